# Writes FIX44.xml as a C++ constant: cmake -DIN=… -DOUT=… -P embed_dictionary.cmake
file(READ ${IN} text)
file(WRITE ${OUT} "#include \"orders/brokers/fix/engine/dictionary.hpp\"\n\nconst char* const todoke::fix::kDictionaryXml = R\"xml(${text})xml\";\n")
