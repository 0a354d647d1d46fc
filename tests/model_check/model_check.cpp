// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// model_check [--large] [--page file] [--only part of a name]
//
// The protocol of ranks that share memory, in every order of events that the memory model of C++ allows: see
// scripts/model-check. Then the same with each memory order of the source relaxed, which must be found. With --page, the table
// of these in a page is compared with what has been found.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "explorer.hpp"
#include "scenarios.hpp"

namespace {

using namespace adasum::test::model;

constexpr std::size_t most_states = 20'000'000, few_paths = 200, many_paths = 50'000;

double seconds() {
  static const auto begin = std::chrono::steady_clock::now();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

const char* name_of(std::memory_order order) {
  return order == std::memory_order_acquire   ? "acquire"
         : order == std::memory_order_release ? "release"
         : order == std::memory_order_seq_cst ? "seq_cst"
                                              : "relaxed";
}

/// @return whether nothing is wrong
bool is_good(const finding& found, const scenario& one, const char* unit) {
  std::printf("%8zu %s, %6.1f s: %s\n", found.states, unit, seconds(), to_text(one).c_str());
  if (!found.complete) std::printf("too many states\n");
  if (!found.problem.empty()) std::printf("%s\n%s", found.problem.c_str(), found.trace.c_str());
  std::fflush(stdout);
  return found.complete && found.problem.empty();
}
bool explore_all(explorer& by, const std::vector<scenario>& all) {
  for (const auto& one : all)
    if (!is_good(by.explore(one, call_sites::none, most_states), one, "states")) return false;
  return true;
}
bool walk_all(explorer& by, const std::vector<scenario>& all, std::size_t paths) {
  for (const auto& one : all)
    if (!is_good(by.walk(one, call_sites::none, paths), one, "paths")) return false;
  return true;
}

/// Whether a line accesses an atomic, and leaves the order to the default. (A communicator's exchange is of messages.)
bool hides_an_order(const std::string& line) {
  if (line.find("comm_.exchange(") != std::string::npos) return false;
  for (const auto* access : {".load(", ".store(", ".exchange(", ".fetch_", ".compare_exchange_"})
    if (line.find(access) != std::string::npos && line.find("memory_order") == std::string::npos) return true;
  return false;
}

/// The lines of a header that say a memory order.
std::set<std::string> lines_with_orders(const std::filesystem::path& header, bool& good) {
  std::set<std::string> found;
  const auto file = header.filename().string();
  std::ifstream source(header);
  std::string text;
  for (int line = 1; std::getline(source, text); ++line) {
    text = text.substr(0, text.find("//"));
    const auto wrong = [&, line](const char* what) {
      std::printf("%s:%d %s\n", file.c_str(), line, what);
      good = false;
    };
    if (hides_an_order(text)) wrong("accesses an atomic, and does not say by which memory order");
    const auto first = text.find("memory_order");
    if (first == std::string::npos) continue;
    if (text.find("memory_order", first + 1) != std::string::npos)
      wrong("has two memory orders: they cannot be told apart");
    found.insert(file + ":" + std::to_string(line));
  }
  return found;
}

/// Whether what was checked is what the source says: each line with a memory order, in any header of the folder, was executed.
bool covers_source(const call_sites& sites, const std::string& folder) {
  bool good = true;
  std::set<std::string> executed, in_source;
  for (const auto& one : sites.all()) executed.insert(one.where());
  for (const auto& entry : std::filesystem::directory_iterator(folder)) in_source.merge(lines_with_orders(entry, good));
  if (in_source.empty()) {
    std::printf("%s: no memory orders\n", folder.c_str());
    good = false;
  }
  for (const auto& line : in_source)
    if (executed.erase(line) == 0) {
      std::printf("%s: no scenario executes this\n", line.c_str());
      good = false;
    }
  for (const auto& line : executed) {
    std::printf("%s: an atomic is accessed here, and the line does not say by which memory order\n", line.c_str());
    good = false;
  }
  return good;
}

/// What goes wrong with the order of one access relaxed; empty: nothing.
std::string breaks(explorer& by, const call_sites& sites, std::size_t site) {
  const auto text = [](const finding& found, const scenario& one) { return found.problem + " (" + to_text(one) + ")"; };
  const bool is_of_more = std::string(sites.all()[site].what) == "flag";  // two ranks meet in one round, and have none
  for (const auto& one : is_of_more ? std::vector<scenario>() : scenarios_of_two()) {
    const auto found = by.explore(one, site, most_states);
    if (!found.problem.empty()) return text(found, one);
  }
  for (const auto& one : scenarios_of_more()) {
    const auto found = by.walk(one, site, few_paths);
    if (!found.problem.empty()) return text(found, one);
  }
  return "";
}

/// @param page  where it says of an order that nothing breaks without it, that is taken for granted: to see it takes as long
///              as all that is explored with all orders as they are
std::string table_of(explorer& by, const call_sites& sites, const std::string& page) {
  std::string table = "| in | word | order | without it |\n|---|---|---|---|\n";
  std::vector<std::pair<std::string, std::string>> rows;
  const auto count = sites.all().size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto one = sites.all()[i];
    const auto begin = seconds();
    const auto row_with = [&](const std::string& without) {
      return "| `" + one.function + "` | `" + one.what + "` | " + (one.writes ? "store, " : "load, ") +
             name_of(one.order) + " | " + without + " |\n";
    };
    auto row = row_with("nothing");
    if (one.order == std::memory_order_relaxed)
      row = row_with("—");
    else if (page.find(row) == std::string::npos)
      if (const auto without = breaks(by, sites, i); !without.empty()) row = row_with(without);
    char line[16];
    std::snprintf(line, sizeof line, "%06d", one.line);
    std::printf("%s, %.1f s: %s", one.where().c_str(), seconds() - begin, row.c_str());
    std::fflush(stdout);
    rows.emplace_back(one.file + line, row);
  }
  for (const auto& [where, row] : std::set(rows.begin(), rows.end())) table += row;
  return table;
}

std::string text_of(const char* page) {
  std::ifstream file(page);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  bool large = false;
  const char *page = nullptr, *only = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--large"))
      large = true;
    else if (!std::strcmp(argv[i], "--page") && i + 1 < argc)
      page = argv[++i];
    else if (!std::strcmp(argv[i], "--only") && i + 1 < argc)
      only = argv[++i];
    else
      return std::fprintf(stderr, "usage: model_check [--large] [--page file] [--only part of a name]\n"), 2;
  }
  seconds();
  call_sites sites;
  explorer by(sites);
  auto two = scenarios_of_two(), more = scenarios_of_more();
  if (large || only)
    for (const auto& one : large_scenarios_of_two()) two.push_back(one);
  if (only) {
    const auto is_other = [&](const scenario& one) { return to_text(one).find(only) == std::string::npos; };
    std::erase_if(two, is_other);
    std::erase_if(more, is_other);
  }
  if (!explore_all(by, two) || !walk_all(by, more, large ? many_paths : few_paths)) return 1;
  if (only) return 0;
  sites.look_up();
  if (!covers_source(sites, ADASUM_TRANSPORT_FOLDER)) return 1;
  const auto text = page ? text_of(page) : std::string();
  const auto table = table_of(by, sites, large ? std::string() : text);
  if (!page || text.find(table) != std::string::npos) return 0;
  std::printf("%s does not hold this table, which is what has been found:\n\n%s", page, table.c_str());
  return 1;
}
