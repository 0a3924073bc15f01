// Text whose words are known: posts made of a vocabulary, so that a search for a word can be told right from
// wrong. The same seed gives the same posts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace todoke::bench {

enum class Language { english, japanese, chinese, korean };
std::string_view name_of(Language language);

struct Post {
  std::string text;
  std::unordered_set<std::string> words;  // those that it was made of, parts of compounds too
};

class PostGenerator {
 public:
  // `unknown`: the share of words that no dictionary has (names, new words).
  PostGenerator(Language language, std::uint64_t seed, double unknown = 0.1);
  // English: `length` words. Others: at least `length` characters.
  Post next(std::size_t length);
  // What is worth searching for: the words of two characters, and the compounds.
  [[nodiscard]] const std::vector<std::string>& two_characters() const { return two_characters_; }
  [[nodiscard]] const std::vector<std::string>& compounds() const { return compounds_; }
  // By how frequent they are, the most frequent first.
  [[nodiscard]] const std::vector<std::string>& words() const { return nouns_; }
  // Words that no dictionary has, of those that were used.
  [[nodiscard]] std::vector<std::string> new_words(std::size_t count) const {
    return {new_words_.begin(),
            new_words_.begin() + static_cast<std::ptrdiff_t>(std::min(count, new_words_.size()))};
  }

 private:
  void add_word(Post& post, const std::string& word) const;
  std::string unknown_word();
  std::size_t skewed(std::size_t size);
  const std::string& pick(const std::vector<std::string>& from) { return from[skewed(from.size())]; }

  Language language_;
  std::mt19937_64 random_;
  double unknown_;
  std::vector<std::string> nouns_;  // the parts of a compound with + between them
  std::vector<std::string> particles_;
  std::vector<std::string> verbs_;
  std::vector<std::string> two_characters_;
  std::vector<std::string> compounds_;
  std::vector<std::string> new_words_;
};

}  // namespace todoke::bench
