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

  --rule RULE[,RULE...]   how gradients are combined (adasum): )" +
         rule_names() + R"(
  --workers W[,W...]      workers, a multiple of the ranks (one per rank); each rule trains with each of these numbers
  --data DIR              directory of MNIST's t10k files, gzipped or not (digits are generated if there is none)
  --images N              images to train on; the others are held out (8192)
  --epochs N              (2)
  --lr RATE               peak learning rate (0.05)
  --seed N                of weights, data order and generated digits (1)
  --csv FILE              appends rule,workers,accuracy
  --history PREFIX        writes step,images,loss,orthogonality into PREFIX-RULE-W.csv
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

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char c : list)
    if (c == ',')
      words.emplace_back();
    else
      words.back() += c;
  return words;
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
      chosen.rules = split(text());
    else if (option == "--workers")
      for (const auto& word : split(text())) chosen.workers.push_back(parse<std::size_t>(option, word));
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

  for (const auto& rule : chosen.rules) rule_of(rule);  // refuses a name that is none
  const auto rank_count = static_cast<std::size_t>(ranks);
  if (chosen.workers.empty()) chosen.workers = {rank_count};
  for (const auto workers : chosen.workers)
    if (workers == 0 || workers % rank_count != 0)
      throw std::invalid_argument("--workers " + std::to_string(workers) + ": not a multiple of the " +
                                  std::to_string(ranks) + " ranks");
  return chosen;
}
