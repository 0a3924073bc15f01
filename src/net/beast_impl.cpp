// Beast's and Asio's TLS code, compiled once (BOOST_BEAST_SEPARATE_COMPILATION,
// BOOST_ASIO_SEPARATE_COMPILATION).
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
