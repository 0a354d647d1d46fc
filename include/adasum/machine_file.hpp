// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "core/config.hpp"

#include <optional>
#include <string>
#include <string_view>

#include "core/concepts.hpp"
#include "detail/references/communicator_ref.hpp"
#include "schedules/machine.hpp"

/// Machines as text, so that what measure_machine found in one run serves the next. A line has a key and its numbers; the
/// first says the version, and # begins a comment:
///
///     version = 1
///     across.latency = 1.2e-05                            # seconds
///     across.per_byte = 8.4e-09 8.4e-09 8.4e-09 8.4e-09   # gradients of 256 KiB, 1, 4 and 16 MiB
///
/// Every key is there once. Numbers are written such that reading them gives the same bits.
namespace adasum {
namespace detail {

inline constexpr const char* machine_variable = "ADASUM_MACHINE";

/// @param name  of the file, for messages
schedules::machine machine_from_text(std::string_view text, const std::string& name);

/// What rank 0 reads, on all ranks.
/// @param path  of the file; null: what machine_variable names, if anything
std::optional<schedules::machine> machine_of_first(const char* call, const communicator_ref& ranks,
                                                   const std::string* path);

}  // namespace detail

/// A machine as the text of a file.
std::string machine_text(const schedules::machine& on);

/// Writes a file that read_machine reads. Usually called on one rank.
/// @throws bad_input  a constant is negative or not finite; the file cannot be written
void write_machine(const schedules::machine& on, const std::string& path);

/// @throws bad_input  the file cannot be read or does not hold a machine; names the file, the line and the key
schedules::machine read_machine(const std::string& path);

/// The same for all ranks: rank 0 reads the file, so that all of them get the same bits. Collective, and waits for all ranks.
/// @throws agreement_error  on all ranks, with the message of rank 0 (with one rank: bad_input); or the ranks do something
///                          else
template <class Space, class Comm>
requires communicator_for<Comm, Space> schedules::machine read_machine(const Space& space, const Comm& comm,
                                                                       const std::string& path) {
  return *detail::machine_of_first("adasum::read_machine", detail::ref_to_communicator(space, comm), &path);
}

/// The machine in the file that the environment variable ADASUM_MACHINE names on rank 0; nothing where it names none.
/// Collective, and waits for all ranks. For programs that leave it to whoever runs them:
///
///     const adasum::schedules::automatic order{.on = adasum::machine_from_environment(exec, comm)};
///
/// @throws as read_machine
template <class Space, class Comm>
requires communicator_for<Comm, Space> std::optional<schedules::machine> machine_from_environment(const Space& space,
                                                                                                  const Comm& comm) {
  return detail::machine_of_first("adasum::machine_from_environment", detail::ref_to_communicator(space, comm),
                                  nullptr);
}

}  // namespace adasum

#if ADASUM_DEFINITIONS
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "core/environment.hpp"
#include "core/error.hpp"
#include "core/named_values.hpp"
#include "detail/engine/call_signature.hpp"
#include "detail/engine/collective_setup.hpp"
#include "detail/engine/lasting_exchanges.hpp"

namespace adasum::detail {

inline constexpr std::string_view machine_version = "1";

/// Takes the words of a text, one after another.
inline std::string_view next_word(std::string_view& text) {
  text = without_blanks(text);
  const auto word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

/// @param where  the place, for messages
inline void read_numbers(std::string_view text, std::span<double> numbers, const std::string& where) {
  const auto expected = counted(numbers.size(), "number");
  for (double& number : numbers) {
    const auto word = next_word(text);
    if (word.empty()) throw bad_input({where, ": needs ", expected});
    if (!read_number(word, number) || !schedules::is_constant(number))
      throw bad_input({where, ": '", word, "' is not a finite number of at least 0"});
  }
  if (!without_blanks(text).empty()) throw bad_input({where, ": has more than ", expected});
}

ADASUM_INLINE schedules::machine machine_from_text(std::string_view text, const std::string& name) {
  schedules::machine_numbers numbers{};
  std::array<bool, schedules::constant_names.size()> is_read{};
  bool has_version = false;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const auto whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    const auto content = without_blanks(whole.substr(0, whole.find('#')));
    if (content.empty()) continue;
    const std::string place = name + ", line " + std::to_string(line);
    const auto equals = content.find('=');
    if (equals == content.npos) throw bad_input({place, ": expected 'key = value', but there is no '='"});
    const std::string key(without_blanks(content.substr(0, equals)));
    const auto value = without_blanks(content.substr(equals + 1));
    if (!has_version) {
      if (key != "version") throw bad_input({place, ": the first key must be version, not '", key, "'"});
      if (value != machine_version)
        throw bad_input({place, ": version '", value, "' is not known; this library reads version ", machine_version});
      has_version = true;
      continue;
    }
    std::size_t i = 0;
    while (i < is_read.size() && key != schedules::constant_names[i].name) ++i;
    if (i == is_read.size()) throw bad_input({place, ": the key '", key, "' is not known"});
    if (std::exchange(is_read[i], true)) throw bad_input({place, ": the key ", key, " is given twice"});
    const auto [_, first, count] = schedules::constant_names[i];
    read_numbers(value, std::span(numbers).subspan(first, count), place + ": " + key);
  }
  if (!has_version) throw bad_input({name, ": the key version is missing"});
  for (std::size_t i = 0; i < is_read.size(); ++i)
    if (!is_read[i]) throw bad_input({name, ": the key ", schedules::constant_names[i].name, " is missing"});
  return std::bit_cast<schedules::machine>(numbers);
}

/// As machine_of_first says; called on rank 0.
inline std::optional<schedules::machine> machine_here(const std::string* path) {
  if (path) return read_machine(*path);
  const auto named = environment(machine_variable);
  return named.empty() ? std::nullopt : std::optional(read_machine(std::string(named)));
}

ADASUM_INLINE std::optional<schedules::machine> machine_of_first(const char* call, const communicator_ref& ranks,
                                                                 const std::string* path) {
  struct answer {  // without padding: all of its bytes are sent
    std::uint64_t is_given = 0;
    schedules::machine constants{};
  };
  using block = block_of<answer>;
  std::optional<block> mine(std::in_place);
  leak_if_in_flight<std::vector<block>> kept(ranks);
  auto& all = kept.memory;
  std::optional<lasting_exchanges> exchanges;
  collective_setup(call, ranks, true).run([&](auto& together) {
    all.resize(static_cast<std::size_t>(ranks.size()));
    exchanges.emplace(ranks, 1);
    if (ranks.rank() == 0) {
      std::string problem;
      try {
        if (const auto found = machine_here(path)) mine->value = {1, *found};
      } catch (const bad_input& wrong) {
        problem = wrong.what();
      }
      if (!problem.empty()) together.refuse(problem);
    }
    call_signature signature;
    signature.set(signature.activity, "reading a machine");
    together.meet(signature);
  });
  const auto found = exchanges->of_first(mine, all, call).value;
  return found.is_given ? std::optional(found.constants) : std::nullopt;
}

/// Why the system has refused a file: ": No such file or directory". The streams do not say, but leave it in errno.
inline std::string why_it_failed() {
  return errno == 0 ? std::string() : ": " + std::generic_category().message(errno);
}

}  // namespace adasum::detail

namespace adasum {

ADASUM_INLINE std::string machine_text(const schedules::machine& on) {
  std::ostringstream text;
  text << "# A machine as adasum::measure_machine has measured it: docs/tuning.md says what the keys mean. Seconds and "
          "bytes;\n"
          "# four numbers are for gradients of up to 256 KiB, and of 1, 4 and 16 MiB.\n"
          "version = "
       << detail::machine_version << "\n";
  const auto numbers = schedules::constants_of(on);
  for (const auto& [key, first, count] : schedules::constant_names) {
    text << key << " =";
    for (auto i = first; i < first + count; ++i) {
      char digits[32];
      text << ' ' << std::string_view(digits, std::to_chars(digits, std::end(digits), numbers[i]).ptr);
    }
    text << '\n';
  }
  return text.str();
}

ADASUM_INLINE void write_machine(const schedules::machine& on, const std::string& path) {
  if (const auto bad = schedules::bad_constant_of(on); !bad.empty())
    throw bad_input({"adasum::write_machine: ", bad, " is negative or not finite"});
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << machine_text(on);
  file.close();
  if (!file) throw bad_input({"adasum::write_machine: ", path, " cannot be written", detail::why_it_failed()});
}

ADASUM_INLINE schedules::machine read_machine(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || text.bad())
    throw bad_input({"adasum::read_machine: ", path, " cannot be read", detail::why_it_failed()});
  return detail::machine_from_text(text.str(), "adasum::read_machine: " + path);
}

}  // namespace adasum
#endif
