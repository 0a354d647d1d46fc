// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace adasum::test::model {

/// Where in the library's source the atomics are that have been accessed: found by addr2line from return addresses. Inlined
/// or instantiated several times, a line is one call site.
class call_sites {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct site {
    std::string file, function;
    int line = 0;
    const char* what = "";  // of a rank's control block
    bool writes = false;
    std::memory_order order = std::memory_order_relaxed;
    std::string where() const { return file + ":" + std::to_string(line); }
  };

  /// An access: its site may be asked for later.
  void note(std::uintptr_t address, const char* what, bool writes, std::memory_order order);
  /// Looks up all that has been noted.
  void look_up();
  /// @return its number; none if it is not the library's. Looks it up if needed
  std::size_t of(std::uintptr_t address);
  const std::vector<site>& all() const { return all_; }
  std::string describe(std::uintptr_t address);

 private:
  struct access {
    const char* what;  // null: no atomic
    bool writes;
    std::memory_order order;
    bool is_known = false;
    std::size_t number = none;
    std::string where{};
  };
  std::size_t number_of(const site& one);

  std::map<std::uintptr_t, access> noted_;
  std::vector<site> all_;
};

}  // namespace adasum::test::model
