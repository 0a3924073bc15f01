#include "nostr/signature.hpp"

#include "nostr/event_id.hpp"
#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

struct Vector {
  std::string_view secret, pubkey, aux, message, signature;
  bool good;
  std::string_view what;
};

// The vectors 0 to 14 of BIP-340: those with messages of 32 bytes.
const std::vector<Vector> kVectors = {
    {"0000000000000000000000000000000000000000000000000000000000000003",
     "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9",
     "0000000000000000000000000000000000000000000000000000000000000000",
     "0000000000000000000000000000000000000000000000000000000000000000",
     "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca821525f66a4a85ea8b71e482a74f382d2ce5ebeee8f"
     "db2172f477df4900d310536c0",
     true, "vector 0"},
    {"b7e151628aed2a6abf7158809cf4f3c762e7160f38b4da56a784d9045190cfef",
     "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659",
     "0000000000000000000000000000000000000000000000000000000000000001",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "6896bd60eeae296db48a229ff71dfe071bde413e6d43f917dc8dcf8c78de33418906d11ac976abccb20b091292bff4ea897efcb"
     "639ea871cfa95f6de339e4b0a",
     true, "vector 1"},
    {"c90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b14e5c9",
     "dd308afec5777e13121fa72b9cc1b7cc0139715309b086c960e18fd969774eb8",
     "c87aa53824b4d7ae2eb035a2b5bbbccc080e76cdc6d1692c4b0b62d798e6d906",
     "7e2d58d8b3bcdf1abadec7829054f90dda9805aab56c77333024b9d0a508b75c",
     "5831aaeed7b44bb74e5eab94ba9d4294c49bcf2a60728d8b4c200f50dd313c1bab745879a5ad954a72c45a91c3a51d3c7adea98"
     "d82f8481e0e1e03674a6f3fb7",
     true, "vector 2"},
    {"0b432b2677937381aef05bb02a66ecd012773062cf3fa2549e44f58ed2401710",
     "25d1dff95105f5253c4022f628a996ad3a0d95fbf21d468a1b33f8c160d8f517",
     "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
     "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
     "7eb0509757e246f19449885651611cb965ecc1a187dd51b64fda1edc9637d5ec97582b9cb13db3933705b32ba982af5af25fd78"
     "881ebb32771fc5922efc66ea3",
     true, "fails if the message is reduced modulo p or n"},
    {"", "d69c3509bb99e412e68b0fe8544e72837dfa30746d8be2aa65975f29d22dc7b9", "",
     "4df3c3f68fcc83b27e9d42c90431a72499f17875c81a599b566c9889b9696703",
     "00000000000000000000003b78ce563f89a0ed9414f5aa28ad0d96d6795f9c6376afb1548af603b3eb45c9f8207dee1060cb71c"
     "04e80f593060b07d28308d7f4",
     true, "vector 4"},
    {"", "eefdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "6cff5c3ba86c69ea4b7376f31a9bcb4f74c1976089b2d9963da2e5543e17776969e89b4c5564d00349106b8497785dd7d1d713a"
     "8ae82b32fa79d5f7fc407d39b",
     false, "public key not on the curve"},
    {"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "fff97bd5755eeea420453a14355235d382f6472f8568a18b2f057a14602975563cc27944640ac607cd107ae10923d9ef7a73c64"
     "3e166be5ebeafa34b1ac553e2",
     false, "R has no even y"},
    {"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "1fa62e331edbc21c394792d2ab1100a7b432b013df3f6ff4f99fcb33e0e1515f28890b3edb6e7189b630448b515ce4f8622a954"
     "cfe545735aaea5134fccdb2bd",
     false, "negated message"},
    {"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "6cff5c3ba86c69ea4b7376f31a9bcb4f74c1976089b2d9963da2e5543e177769961764b3aa9b2ffcb6ef947b6887a226e8d7c93"
     "e00c5ed0c1834ff0d0c2e6da6",
     false, "negated s"},
    {"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "0000000000000000000000000000000000000000000000000000000000000000123dda8328af9c23a94c1feecfd123ba4fb7347"
     "6f0d594dcb65c6425bd186051",
     false, "sG - eP is infinite, x 0"},
    {"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "00000000000000000000000000000000000000000000000000000000000000017615fbaf5ae28864013c099742deadb4dba87f1"
     "1ac6754f93780d5a1837cf197",
     false, "sG - eP is infinite, x 1"},
    {"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "4a298dacae57395a15d0795ddbfd1dcb564da82b0f269bc70a74f8220429ba1d69e89b4c5564d00349106b8497785dd7d1d713a"
     "8ae82b32fa79d5f7fc407d39b",
     false, "r is not on the curve"},
    {"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f69e89b4c5564d00349106b8497785dd7d1d713a"
     "8ae82b32fa79d5f7fc407d39b",
     false, "r is the field size"},
    {"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "6cff5c3ba86c69ea4b7376f31a9bcb4f74c1976089b2d9963da2e5543e177769fffffffffffffffffffffffffffffffebaaedce"
     "6af48a03bbfd25e8cd0364141",
     false, "s is the curve order"},
    {"", "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc30", "",
     "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89",
     "6cff5c3ba86c69ea4b7376f31a9bcb4f74c1976089b2d9963da2e5543e17776969e89b4c5564d00349106b8497785dd7d1d713a"
     "8ae82b32fa79d5f7fc407d39b",
     false, "public key beyond the field size"},
};

TEST(SignatureTest, VerifiesTheVectorsOfBip340) {
  for (const auto& vector : kVectors) {
    EXPECT_EQ(verify(*Pubkey::from_hex(vector.pubkey), *EventId::from_hex(vector.message),
                     *Signature::from_hex(vector.signature)),
              vector.good)
        << vector.what;
  }
}

TEST(SignatureTest, SignsTheVectorsOfBip340) {
  for (const auto& vector : kVectors) {
    if (vector.secret.empty()) continue;
    const auto key = SecretKey::from_hex(vector.secret);
    ASSERT_TRUE(key) << vector.what;
    EXPECT_EQ(key->pubkey().hex(), vector.pubkey) << vector.what;
    std::array<std::uint8_t, 32> aux{};
    ASSERT_TRUE(from_hex(vector.aux, aux));
    EXPECT_EQ(key->sign(*EventId::from_hex(vector.message), aux).hex(), vector.signature) << vector.what;
  }
}

TEST(SignatureTest, OneFlippedBitAnywhereIsNoticed) {
  const auto event = test::event_with(1, {});
  ASSERT_TRUE(has_right_signature(event));
  for (std::size_t i = 0; i < Signature::kSize; i += 7) {
    auto bytes = event.sig().bytes();
    bytes[i] ^= 1;
    EXPECT_FALSE(verify(event.pubkey(), event.id(), Signature(bytes)));
  }
  auto id = event.id().bytes();
  id[31] ^= 1;
  EXPECT_FALSE(verify(event.pubkey(), EventId(id), event.sig()));
}

TEST(SignatureTest, KeysOutsideTheCurvesOrderAreRefused) {
  EXPECT_FALSE(SecretKey::from_hex(std::string(64, '0')));
  EXPECT_FALSE(SecretKey::from_hex(std::string(64, 'f')));
  EXPECT_FALSE(SecretKey::from_hex("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"));
  EXPECT_TRUE(SecretKey::from_hex("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364140"));
  EXPECT_FALSE(SecretKey::from_hex("abc"));
}

TEST(SignEvent, GivesAnEventThatEverybodyAccepts) {
  const auto key = SecretKey::generate();
  const auto event = sign_event({5, 1, {{"t", "x"}}, "text"}, key);
  EXPECT_EQ(event.pubkey(), key.pubkey());
  EXPECT_TRUE(has_right_id(event));
  EXPECT_TRUE(has_right_signature(event));
  EXPECT_NE(key.pubkey(), SecretKey::generate().pubkey());
}

TEST(SignEvent, ThrowsForTextThatIsNoUtf8) {
  EXPECT_THROW(sign_event({0, 1, {}, "\xff"}, test::alice()), std::invalid_argument);
  EXPECT_THROW(sign_event({0, 1, {{"t", "\xc0\x80"}}, ""}, test::alice()), std::invalid_argument);
}

}  // namespace
}  // namespace todoke::nostr
