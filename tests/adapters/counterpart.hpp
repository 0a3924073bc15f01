// A broker as the conformance suite needs it: behaves as told, and can say what it has executed.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "orders/core/adapter.hpp"

namespace todoke::test {

// What the broker does with the first try of each order; later ones are filled.
enum class Behaviour {
  fills,
  rejects,
  stays_silent,   // does nothing and does not answer
  loses_answers,  // executes and does not answer
  is_down,        // can't be reached
};

class Counterpart {
 public:
  virtual ~Counterpart() = default;
  Counterpart() = default;
  Counterpart(const Counterpart&) = delete;
  Counterpart& operator=(const Counterpart&) = delete;

  // The adapter is used on this executor only.
  virtual std::unique_ptr<orders::BrokerAdapter> adapter(const Executor& executor, Behaviour behaviour) = 0;
  // How many orders of this id were executed.
  virtual Task<int> executions(std::string broker_id) = 0;
};

struct CounterpartFactory {
  std::string name;
  std::function<std::unique_ptr<Counterpart>()> make;
};

// The name of a test shows this and not the bytes of the factory.
inline void PrintTo(const CounterpartFactory& factory, std::ostream* out) {
  *out << factory.name;
}

std::unique_ptr<Counterpart> make_paper_counterpart();
std::unique_ptr<Counterpart> make_http_counterpart();
std::unique_ptr<Counterpart> make_fix_counterpart();

}  // namespace todoke::test
