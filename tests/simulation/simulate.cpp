// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// simulate [--cases N] [--seed S] [--case "name=number ..."] [--plant what]
//
// Runs generated cases of simulated reductions, one after the other: see scripts/simulate. With --plant, something is wrong
// on purpose, and the program fails unless, in one of the cases, the check that is to find it does.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "case.hpp"
#include "support/allocations.hpp"
#include "tested_communicator.hpp"
#include "verdict.hpp"

namespace {

using namespace adasum::test;

simulated_verdict run_once(const simulated_case& one) {
  switch (static_cast<simulated_scalar>(one.scalar)) {
    case simulated_scalar::of_double: return run_case_of_double(one);
    case simulated_scalar::of_half: return run_case_of_half(one);
    case simulated_scalar::of_float:
    case simulated_scalar::count: break;
  }
  return run_case_of_float(one);
}

// ── what is told of a case that does not come back ──

char current[512] = "";

void tell(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) _exit(3);
}
extern "C" void on_signal(int number) {
  tell(number == SIGALRM ? "\nsimulate: a rank is at work for ever in the case:\n  "
                         : "\nsimulate: the program failed in the case:\n  ");
  tell(current);
  tell("\n");
  _exit(3);
}
constexpr unsigned longest_seconds = 600;

/// A case, and whether it leaves memory behind.
simulated_verdict run_and_count(const simulated_case& one) {
  const auto text = to_text(one);
  std::snprintf(current, sizeof current, "%s", text.c_str());
  alarm(longest_seconds);
  const auto counted = [&](std::ptrdiff_t& left) {
    const auto before = live_allocations();
    auto verdict = run_once(one);
    left = live_allocations() - before - (verdict.problem.capacity() > std::string().capacity() ? 1 : 0);
    return verdict;
  };
  std::ptrdiff_t left = 0;
  auto verdict = counted(left);
  if (verdict.problem.empty() && left != 0) {  // what stays for good is made once
    const auto again = counted(left);
    if (left != 0) verdict.problem = std::to_string(left) + " allocations are left";
    if (again.trace != verdict.trace) verdict.problem = "the same case went otherwise the second time";
  }
  alarm(0);
  return verdict;
}

struct arguments {
  std::uint64_t cases = 100'000, seed = 1;
  std::string one_case;
  bool good = true;
};

bool is_number(const std::string& text, std::uint64_t& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size();
}

arguments read(int argc, char** argv) {
  arguments found;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--cases")
      found.good = found.good && is_number(value, found.cases) && found.cases > 0;
    else if (name == "--seed")
      found.good = found.good && is_number(value, found.seed);
    else if (name == "--case" && !value.empty())
      found.one_case = value;
    else if (const auto which = std::ranges::find(plants, value, &plant_and_check::name);
             name == "--plant" && which != plants.end())
      planted = static_cast<plant>(which - plants.begin());
    else
      found.good = false;
  }
  return found;
}

/// The n'th case of a seed.
simulated_case case_number(std::uint64_t seed, std::uint64_t n) {
  return generated_case(adasum::detail::simulated::rng::mixed(seed) + n);
}

class progress_bar {
 public:
  explicit progress_bar(std::uint64_t all) : all_(all), shows_(isatty(STDERR_FILENO) != 0) {}
  ~progress_bar() {
    if (shows_) std::fprintf(stderr, "\n");
  }
  void show(std::uint64_t done, std::size_t failed) {
    const auto percent = done * 100 / all_;
    if (percent == shown_ && failed == failed_) return;
    shown_ = percent;
    failed_ = failed;
    if (shows_)
      std::fprintf(stderr, "\r[%-50s] %3d %%, %llu of %llu cases, %zu failed", std::string(percent / 2, '#').c_str(),
                   static_cast<int>(percent), static_cast<unsigned long long>(done),
                   static_cast<unsigned long long>(all_), failed);
    else if (percent % 10 == 0)
      std::fprintf(stderr, "%d %%, %zu failed\n", static_cast<int>(percent), failed);
  }

 private:
  std::uint64_t all_, shown_ = 0;
  std::size_t failed_ = 0;
  bool shows_;
};

/// What is printed last is a smaller case with a problem that begins alike.
void report_failure(const simulated_case& one, const std::string& problem) {
  constexpr std::size_t kind = 12;
  std::printf("\nfailed: %s\n  %s\n", to_text(one).c_str(), problem.c_str());
  std::fflush(stdout);
  const auto small = shrunk(one, [&](const simulated_case& candidate) {
    return run_and_count(candidate).problem.substr(0, kind) == problem.substr(0, kind);
  });
  std::printf("  smaller: --case \"%s\"\n  %s\n", to_text(small).c_str(), run_and_count(small).problem.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const auto given = read(argc, argv);
  if (!given.good) {
    std::fprintf(stderr, "simulate: --cases N, --seed S, --case \"name=number ...\", --plant what (see plants)\n");
    return 2;
  }
  for (const int number : {SIGALRM, SIGSEGV, SIGABRT, SIGFPE, SIGBUS}) std::signal(number, on_signal);

  if (!given.one_case.empty()) {
    auto one = case_from_text(given.one_case);
    if (!one) {
      std::fprintf(stderr, "simulate: this is no case: %s\n", given.one_case.c_str());
      return 2;
    }
    repair(*one);
    const auto verdict = run_and_count(*one);
    std::printf("%s; %s\n", verdict.problem.empty() ? "nothing is wrong" : verdict.problem.c_str(),
                verdict.timed_out ? "it needs a timeout"
                : verdict.came    ? "the trouble came"
                                  : "no trouble came");
    if (!verdict.problem.empty()) report_failure(*one, verdict.problem);
    return verdict.problem.empty() ? 0 : 1;
  }

  const bool is_planted = planted != plant::nothing;
  const std::size_t most_failures = is_planted ? 1 : 5;
  constexpr std::uint64_t between_repetitions = 50;
  std::size_t failed = 0, troubled = 0, timed_out = 0, had_errors = 0;
  std::uint64_t done = 0;
  progress_bar bar(given.cases);
  for (; done < given.cases && failed < most_failures; ++done) {
    const auto one = case_number(given.seed, done);
    const auto verdict = run_and_count(one);
    troubled += verdict.came;
    timed_out += verdict.timed_out;
    had_errors += verdict.had_errors && !verdict.timed_out;
    auto problem = verdict.problem;
    if (problem.empty() && done % between_repetitions == 0 && run_and_count(one).trace != verdict.trace)
      problem = "the same case went otherwise the second time";
    // What is planted may show in several ways: it counts where the check that is for it finds it.
    if (is_planted && problem.find(plants[static_cast<std::size_t>(planted)].found) == std::string::npos)
      problem.clear();
    if (!problem.empty()) {
      ++failed;
      std::printf("case %llu of seed %llu", static_cast<unsigned long long>(done),
                  static_cast<unsigned long long>(given.seed));
      report_failure(one, problem);
    }
    bar.show(done + 1, failed);
  }
  std::printf(
      "%llu cases: in %zu something was made to go wrong; %zu gave the result on all ranks in all runs, %zu errors, "
      "%zu need a timeout; %zu failed\n",
      static_cast<unsigned long long>(done), troubled, static_cast<std::size_t>(done) - had_errors - timed_out,
      had_errors, timed_out, failed);
  return (failed == 0) == is_planted ? 1 : 0;
}
