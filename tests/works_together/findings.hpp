// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace adasum::test {

/// What a test program has found of what works together, as tables of words. It is compared with what is committed, in
/// found/<program>.txt, from which page.py makes docs/works_together.md. Where ADASUM_WRITE_FINDINGS is set, it is written
/// there instead (scripts/works-together).
///
///     [rules × schedules]                      a table
///     adasum, mean                             rows that are alike
///       recursive_halving: by levels           a column, and every word that was found there
class findings {
 public:
  void note(const std::string& table, std::string_view row, std::string_view column, std::string_view word) {
    auto& cells = entry(entry(tables_, table), std::string(row));
    auto& words = entry(cells, std::string(column));
    if (std::ranges::find(words, word) == words.end()) words.emplace_back(word);
  }
  void count(const std::string& what, std::size_t more = 1) { counts_[what] += more; }

  /// What another one has found.
  void add(const findings& other) {
    for (const auto& [table, rows] : other.tables_)
      for (const auto& [row, cells] : rows)
        for (const auto& [column, words] : cells)
          for (const auto& word : words) note(table, row, column, word);
    add_counts(other);
  }
  /// How often, and not in which combinations.
  void add_counts(const findings& other) {
    for (const auto& [what, number] : other.counts_) count(what, number);
  }

  std::string text() const {
    std::ostringstream out;
    for (const auto& [table, rows] : tables_) {
      out << '[' << table << "]\n";
      std::vector<std::pair<std::string, std::string>> alike;  // cells, names
      for (const auto& [row, cells] : rows) {
        std::string lines;
        for (const auto& [column, words] : cells) lines += "  " + column + ": " + joined(words) + "\n";
        const auto same = std::ranges::find(alike, lines, &std::pair<std::string, std::string>::first);
        if (same == alike.end())
          alike.emplace_back(lines, row);
        else
          same->second += ", " + row;
      }
      for (const auto& [lines, names] : alike) out << names << '\n' << lines;
    }
    out << "[counts]\n";
    for (const auto& [what, number] : counts_) out << what << ": " << number << '\n';
    return out.str();
  }

  /// The first line in which the text differs from that of the file; empty if none does, or if it has been written there.
  std::string difference_from(const std::string& file) const {
    const auto mine = text();
    if (std::getenv("ADASUM_WRITE_FINDINGS") != nullptr) {
      std::ofstream(file) << mine;
      return {};
    }
    std::ifstream committed(file);
    if (!committed) return file + " cannot be read";
    std::istringstream found(mine);
    for (std::string one, other;;) {
      const bool has_one = static_cast<bool>(std::getline(found, one)),
                 has_other = static_cast<bool>(std::getline(committed, other));
      if (!has_one && !has_other) return {};
      if (has_one != has_other || one != other)
        return "found: '" + (has_one ? one : "nothing more") + "', but " + file + " says: '" +
               (has_other ? other : "nothing more") + "'; if that is right, run scripts/works-together";
    }
  }

 private:
  template <class Value>
  using ordered = std::vector<std::pair<std::string, Value>>;

  /// That of the name, which comes last if it is new.
  template <class Value>
  static Value& entry(ordered<Value>& all, const std::string& name) {
    const auto at = std::ranges::find(all, name, &std::pair<std::string, Value>::first);
    return at != all.end() ? at->second : all.emplace_back(name, Value{}).second;
  }
  static std::string joined(std::vector<std::string> words) {
    std::ranges::sort(words);
    std::string all;
    for (const auto& word : words) (all += all.empty() ? "" : "; ") += word;
    return all;
  }

  ordered<ordered<ordered<std::vector<std::string>>>> tables_;
  std::map<std::string, std::size_t> counts_;
};

}  // namespace adasum::test
