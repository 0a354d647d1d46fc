// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// same_sequence [--plant name]
//
// Whether the model's ranks (ranks.cpp) do what the library's do: what each rank calls, reads and writes in each run, in
// which order. With --plant, the record of what the library does is changed, and the comparison must find that.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recorded_reductions.hpp"
#include "scenarios.hpp"

namespace {

using namespace adasum::test::model;

const std::string fails = "fails", waits = "waits", is_alone = "waits until it is left alone";

/// Whether it is the other one up to a wait, in which the rank hears that another one has failed or left. In which wait
/// depends on the turns of the ranks.
bool is_cut_off(const sequence& one, const sequence& ordinary) {
  if (one.size() < 3 || *(one.end() - 1) != is_alone || *(one.end() - 2) != fails || *(one.end() - 3) != waits)
    return false;
  return one.size() - 2 <= ordinary.size() && std::equal(one.begin(), one.end() - 2, ordinary.begin());
}

// ── plants ──

using change = void (*)(sequence&);
/// The last line that begins like this.
auto last(sequence& all, std::string_view begin) {
  return std::find_if(all.rbegin(), all.rend(), [&](const std::string& line) { return line.starts_with(begin); });
}
void omit_last_wait(sequence& all) {
  if (const auto found = last(all, waits); found != all.rend()) all.erase(std::next(found).base());
}
void publish_late(sequence& all) {
  const auto found = std::ranges::find(all, "publishes where its gradient lies");
  if (found != all.end() && std::next(found) != all.end()) std::iter_swap(found, std::next(found));
}
void write_early(sequence& all) {
  if (const auto found = last(all, "adds"); found != all.rend() && found != all.rbegin())
    std::iter_swap(found, std::prev(found));
}
constexpr std::array<std::pair<std::string_view, change>, 3> plants{
    {{"missing-wait", omit_last_wait}, {"late-address", publish_late}, {"early-write", write_early}}};

// ── comparing ──

class comparison {
 public:
  explicit comparison(change planted) : planted_(planted) {}

  /// @param ordinary  what the library does without faults; null: there are none here
  /// @return what the library does
  recorded compare(const scenario& one, const recorded* ordinary) {
    auto library = ordinary ? record_library(one, *ordinary) : record_library(one);
    const auto model = record_model(one);
    if (planted_)
      for (auto& rank : library.ranks) planted_(rank.at(1));
    ++compared_;
    note(one, library.problem.empty() ? model.problem : library.problem);
    for (std::size_t rank = 0; rank < one.ranks; ++rank)
      compare_rank(one, ordinary, rank, library.ranks[rank], model.ranks[rank]);
    return library;
  }

  std::size_t compared() const { return compared_; }
  bool good() const { return good_; }

 private:
  void compare_rank(const scenario& one, const recorded* ordinary, std::size_t rank,
                    const std::vector<sequence>& library, const std::vector<sequence>& model) {
    if (library.size() != model.size()) return note(one, "a rank makes another number of runs than in the model");
    for (std::size_t run = 0; run < library.size(); ++run) {
      const bool fails_first = is_culprit(one, rank, run);
      const auto may_end_so = [&](const sequence& all) {
        const auto& good = ordinary->ranks[rank];
        return run < good.size() && (all == good[run] || is_cut_off(all, good[run]));
      };
      if (library[run] == model[run]) {
        if (library[run].empty() || (fails_first && library[run].back() != is_alone))
          note(one, "rank " + std::to_string(rank) + " does not do in run " + std::to_string(run) + " what it should");
        continue;
      }
      if (ordinary && !fails_first && may_end_so(library[run]) && may_end_so(model[run])) continue;
      note(one, "rank " + std::to_string(rank) + " does something else in run " + std::to_string(run));
      print("in the library", library[run], model[run]);
      print("in the model", model[run], library[run]);
    }
  }
  static bool is_culprit(const scenario& one, std::size_t rank, std::size_t run) {
    return std::ranges::any_of(one.faults, [&](const fault& each) {
      return each.where != point::none && each.rank == rank && each.run == run;
    });
  }
  void note(const scenario& one, const std::string& problem) {
    if (problem.empty()) return;
    good_ = false;
    std::printf("%s: %s\n", to_text(one).c_str(), problem.c_str());
    std::fflush(stdout);  // a rank that does not wait may work on memory that another has freed
  }
  static void print(const char* where, const sequence& all, const sequence& other) {
    std::printf("%s:\n", where);
    const auto differs = std::ranges::mismatch(all, other).in1;
    for (auto line = all.begin(); line != all.end(); ++line)
      std::printf("%s %s\n", line == differs ? ">" : " ", line->c_str());
  }

  change planted_;
  std::size_t compared_ = 0;
  bool good_ = true;
};

// ── what is compared ──

/// Whether the library can be made to fail there.
bool can_fail(const scenario& one, const fault& each) {
  const bool by_itself = each.where < point::impatient_first && each.where != point::before_first;
  if (one.what == work::behind && each.rank % 2 == 1 && by_itself) return false;  // it computes nothing
  // Vectors that nearly cancel are measured and mixed several times.
  const bool cancel = one.what == work::sums || (one.what == work::levels && each.rank < 2);
  if (cancel && by_itself && each.where != point::after_first) return false;
  return each.where < point::impatient_first || one.blocking;
}

void compare_all(comparison& by, const scenario& base) {
  std::vector<scenario> all;
  add_with_faults(all, base, {0, base.ranks - 1});
  recorded ordinary;
  for (const auto& one : all) {
    const auto& each = one.faults.front();
    if (each.where == point::none)
      ordinary = by.compare(one, nullptr);
    else if (can_fail(one, each))
      by.compare(one, &ordinary);
    if (!by.good()) return;
  }
  auto left = base;
  left.leaves = {1, 1};
  by.compare(left, &ordinary);
}

}  // namespace

int main(int argc, char** argv) {
  change planted = nullptr;
  if (argc == 3 && argv[1] == std::string_view("--plant"))
    for (const auto& [name, what] : plants)
      if (argv[2] == name) planted = what;
  if (argc > 1 && !planted) return std::fprintf(stderr, "usage: same_sequence [--plant name]\n"), 2;
  comparison by(planted);
  for (const bool blocking : {false, true}) {
    for (const std::size_t ranks : {2u, 3u})
      for (const auto what : {work::in_place, work::unmeasured, work::copies})
        compare_all(by, {.what = what, .ranks = ranks, .blocking = blocking});
    compare_all(by, {.what = work::sums, .blocking = blocking});
    compare_all(by, {.what = work::levels, .ranks = 4, .blocking = blocking});
    compare_all(by, {.what = work::behind, .ranks = 4, .blocking = blocking});
    for (const auto what : {work::in_place, work::copies})
      by.compare({.what = what, .one_address_space = false, .blocking = blocking}, nullptr);
  }
  std::printf("%zu scenarios compared\n", by.compared());
  return by.good() ? 0 : 1;
}
