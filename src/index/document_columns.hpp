// Inside this room: documents as arrays of columns, the parameters of put_documents and load_documents.
#pragma once

#include <span>

#include "index/document.hpp"
#include "pg/params.hpp"

namespace todoke::index {

pg::Params columns_of(std::span<const Document> documents);

}  // namespace todoke::index
