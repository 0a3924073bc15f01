// The part of FIX 4.4 that is spoken here (FIX44.xml), compiled in. C++14, for the sessions only.
//
// It says which fields a message must have and which groups it may have, and no more: texts everywhere, no
// lists of values, any other field. A report that a stricter dictionary would refuse is a fill that is lost.
#pragma once

#include <string>

namespace FIX {
class DataDictionaryProvider;
}

namespace todoke {
namespace fix {

extern const char* const kDictionaryXml;

// Throws what QuickFIX throws for a dictionary that is no good.
FIX::DataDictionaryProvider dictionary();

}  // namespace fix
}  // namespace todoke
