// The TOML layer. The parser's headers are heavy and stay in this file.
#include <filesystem>

#include <fmt/format.h>
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include "base/config.hpp"

namespace todoke {
namespace {

std::string where(const std::string& name, const toml::node& node) {
  return fmt::format("{}:{}", name, node.source().begin.line);
}

// The value as it would be written in the environment; nothing for what no key can be (tables, dates,
// floats).
std::optional<std::string> as_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return std::string(flag->get() ? "true" : "false");
  if (const auto* array = node.as_array()) {
    std::string joined;
    for (const auto& entry : *array) {
      const auto text = as_text(entry);
      if (!text || entry.is_array()) return std::nullopt;
      joined += (joined.empty() ? "" : ",") + *text;
    }
    return joined;
  }
  return std::nullopt;
}

bool type_fits(const KeySpec& spec, const toml::node& node) {
  switch (spec.type) {
    case KeyType::integer:
      return node.is_integer();
    case KeyType::boolean:
      return node.is_boolean();
    case KeyType::duration:
    case KeyType::size:
      return node.is_number() || node.is_string();
    case KeyType::list:
      return node.is_array();
    default:
      return node.is_string();
  }
}

}  // namespace

void Config::load_toml(std::string_view text, const std::string& name) {
  toml::table root;
  try {
    root = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    throw UserError(
        fmt::format("{}:{}: no valid TOML: {}", name, error.source().begin.line, error.description()));
  }
  const auto visit = [&](const auto& self, const toml::table& table, const std::string& prefix) -> void {
    for (const auto& [key, node] : table) {
      const auto path = prefix + std::string(key.str());
      const auto source = where(name, node);
      if (const auto* inner = node.as_table()) {
        self(self, *inner, path + ".");
        continue;
      }
      if (const auto* spec = schema_->find(path)) {
        const auto value = as_text(node);
        if (!value || !type_fits(*spec, node)) {
          throw UserError(
              fmt::format("{}: {} has the wrong type; allowed: {}", source, path, allowed_values(*spec)));
        }
        set_value(*spec, *value, Layer::file, source);
        continue;
      }
      if (note_removed(path, Layer::file, source)) continue;
      constexpr std::string_view kFileSuffix = "_file";
      const auto* secret = path.ends_with(kFileSuffix)
                               ? schema_->find(path.substr(0, path.size() - kFileSuffix.size()))
                               : nullptr;
      if (secret == nullptr || !secret->secret || !node.is_string()) {
        throw UserError(fmt::format("{}: {}: no such key; `todoke config` lists them all", source, path));
      }
      auto secret_path = std::filesystem::path(node.as_string()->get());
      if (secret_path.is_relative()) secret_path = std::filesystem::path(name).parent_path() / secret_path;
      set_from_file(*secret, secret_path.string(), Layer::file, source);
    }
  };
  visit(visit, root, "");
}

}  // namespace todoke
