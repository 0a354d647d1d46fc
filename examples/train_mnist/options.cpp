// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.hpp"

#include <algorithm>
#include <concepts>
#include <sstream>
#include <stdexcept>
#include <type_traits>

#include "rules.hpp"

std::string usage() {
  return R"(Usage: mpirun -n RANKS train_mnist [OPTION...]
Trains a convolutional network on digits, data-parallel: in each step every worker takes a batch of its own, and the
gradients of all workers are combined.

  --rule RULE             how gradients are combined (adasum): )" +
         rule_names() + R"(
  --workers W             workers, a multiple of the ranks (one per rank)
  --virtual K             workers per rank; another way to say --workers RANKS*K
  --data DIR              directory of MNIST's t10k files, gzipped or not (digits are generated if there is none)
  --images N              images to train on; the others are held out (8192)
  --epochs N              (2)
  --lr RATE               peak learning rate (0.05)
  --seed N                of weights, data order and generated digits (1)
  --csv FILE              appends rule,workers,accuracy
  --history FILE          writes step,images,loss,orthogonality (CSV)
  --no-progress           no progress bar
)";
}

namespace {

template <class T>
T parse(const std::string& option, const std::string& text) {
  if constexpr (std::unsigned_integral<T>)
    if (text.starts_with('-')) throw std::invalid_argument(option + " " + text + ": must not be negative");
  std::istringstream stream(text);
  T value;
  if (!(stream >> value) || !stream.eof()) throw std::invalid_argument(option + " " + text + ": not a number");
  return value;
}

}  // namespace

training_options parse_options(int argc, char** argv, int ranks) {
  training_options chosen;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto text = [&]() -> std::string {
      if (++i == argc) throw std::invalid_argument(option + ": a value is missing");
      return argv[i];
    };
    const auto number = [&](auto& target) {
      target = parse<std::remove_reference_t<decltype(target)>>(option, text());
    };
    if (option == "--rule")
      chosen.rule = text();
    else if (option == "--workers")
      number(chosen.workers);
    else if (option == "--virtual")
      number(chosen.virtual_workers);
    else if (option == "--data")
      chosen.data = text();
    else if (option == "--images")
      number(chosen.images);
    else if (option == "--epochs")
      number(chosen.epochs);
    else if (option == "--lr")
      number(chosen.rate);
    else if (option == "--seed")
      number(chosen.seed);
    else if (option == "--csv")
      chosen.csv = text();
    else if (option == "--history")
      chosen.history = text();
    else if (option == "--no-progress")
      chosen.progress = false;
    else if (option == "--help")
      chosen.help = true;
    else
      throw std::invalid_argument("unknown option " + option);
  }

  rule_of(chosen.rule);  // refuses a name that is none
  const auto rank_count = static_cast<std::size_t>(ranks);
  if (chosen.workers % rank_count != 0)
    throw std::invalid_argument("--workers " + std::to_string(chosen.workers) + ": not a multiple of the " +
                                std::to_string(ranks) + " ranks");
  if (chosen.virtual_workers == 0) chosen.virtual_workers = std::max<std::size_t>(1, chosen.workers / rank_count);
  if (chosen.workers == 0) chosen.workers = chosen.virtual_workers * rank_count;
  if (chosen.workers != chosen.virtual_workers * rank_count)
    throw std::invalid_argument("--workers " + std::to_string(chosen.workers) + ": " + std::to_string(ranks) +
                                " ranks with --virtual " + std::to_string(chosen.virtual_workers) + " are " +
                                std::to_string(chosen.virtual_workers * rank_count));
  return chosen;
}
