// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "call_sites.hpp"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace adasum::test::model {

namespace {

/// Where the program lies in memory, less where it lies in its file.
std::uintptr_t load_address() {
  std::uintptr_t found = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* program, std::size_t, void* to) {
        *static_cast<std::uintptr_t*>(to) = program->dlpi_addr;
        return 1;  // the first is the program
      },
      &found);
  return found;
}

/// "std::x<int>::name(int) const" → "name"
std::string short_name(std::string whole) {
  int depth = 0;
  std::string kept;
  for (const char c : whole) {
    depth -= c == '>';
    if (depth == 0 && c == '(') break;
    if (depth == 0 && c != '>') kept += c;
    depth += c == '<';
  }
  kept.erase(std::remove(kept.begin(), kept.end(), '<'), kept.end());
  const auto colons = kept.rfind("::");
  if (colons != std::string::npos) kept = kept.substr(colons + 2);
  return kept.substr(kept.rfind(' ') == std::string::npos ? 0 : kept.rfind(' ') + 1);
}

constexpr const char* folder = "/detail/engine/transport/";

}  // namespace

void call_sites::note(std::uintptr_t address, const char* what, bool writes, std::memory_order order) {
  noted_.try_emplace(address, access{what, writes, order});
}

std::size_t call_sites::number_of(const site& one) {
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (all_[i].file == one.file && all_[i].line == one.line && all_[i].writes == one.writes) return i;
  all_.push_back(one);
  return all_.size() - 1;
}

void call_sites::look_up() {
  std::string command = "addr2line -a -i -f -C -e /proc/" + std::to_string(getpid()) + "/exe";
  bool any = false;
  for (const auto& [address, one] : noted_) {
    if (one.is_known) continue;
    char text[32];
    std::snprintf(text, sizeof text, " 0x%zx", static_cast<std::size_t>(address - 1 - load_address()));
    command += text;
    any = true;
  }
  if (!any) return;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 8192> line{};
  access* current = nullptr;
  std::string function;
  while (pipe && std::fgets(line.data(), line.size(), pipe.get())) {
    std::string text(line.data());
    text.erase(text.find_last_not_of('\n') + 1);
    if (text.rfind("0x", 0) == 0) {
      current = &noted_.at(std::strtoull(text.c_str(), nullptr, 16) + 1 + load_address());
      current->is_known = true;
      function.clear();
    } else if (function.empty()) {
      function = text;
    } else {
      const auto at = text.find(folder);
      if (current && current->where.empty() && at != std::string::npos) {
        const auto name = text.substr(at + std::char_traits<char>::length(folder));
        const auto colon = name.rfind(':');
        const site one{name.substr(0, colon), short_name(function), std::atoi(name.c_str() + colon + 1),
                       current->what,         current->writes,      current->order};
        current->where = one.where() + " " + one.function;
        if (current->what) current->number = number_of(one);
      }
      function.clear();
    }
  }
  for (const auto& [address, one] : noted_) {
    if (one.is_known) continue;
    std::fprintf(stderr, "model_check: addr2line (Debian: binutils) cannot tell where an access is made\n");
    std::exit(3);
  }
}

std::size_t call_sites::of(std::uintptr_t address) {
  const auto found = noted_.find(address);
  if (found == noted_.end()) return none;
  if (!found->second.is_known) look_up();
  return found->second.number;
}

std::string call_sites::describe(std::uintptr_t address) {
  noted_.try_emplace(address, access{nullptr, false, std::memory_order_relaxed});
  of(address);
  const auto& where = noted_.at(address).where;
  return where.empty() ? "what a rank computes" : where;
}

}  // namespace adasum::test::model
