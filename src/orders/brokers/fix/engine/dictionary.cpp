#include "orders/brokers/fix/engine/dictionary.hpp"

#include <quickfix/DataDictionary.h>
#include <quickfix/DataDictionaryProvider.h>
#include <sstream>

namespace todoke {
namespace fix {

FIX::DataDictionaryProvider dictionary() {
  std::istringstream xml(kDictionaryXml);
  ptr::shared_ptr<FIX::DataDictionary> read(new FIX::DataDictionary(xml));
  read->checkFieldsOutOfOrder(false);
  read->checkFieldsHaveValues(false);
  read->checkUserDefinedFields(false);
  read->allowUnknownMsgFields(true);
  FIX::DataDictionaryProvider provider;
  provider.addTransportDataDictionary(FIX::BeginString("FIX.4.4"), read);
  return provider;
}

}  // namespace fix
}  // namespace todoke
