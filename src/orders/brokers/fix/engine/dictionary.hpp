// The part of FIX 4.4 that is spoken here (FIX44.xml), compiled in. C++14, for the sessions only.
//
// It says which fields a message must have and which groups it may have, and no more: every field is a text
// with any value, and unknown fields pass. A stricter dictionary would refuse reports, and so lose fills.
#pragma once

#include <string>

namespace FIX {
class DataDictionaryProvider;
}

namespace todoke {
namespace fix {

extern const char* const kDictionaryXml;

// Throws QuickFIX's exception for a faulty dictionary.
FIX::DataDictionaryProvider dictionary();

}  // namespace fix
}  // namespace todoke
