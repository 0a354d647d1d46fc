// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <adasum/communicators/self.hpp>
#include <adasum/communicators/threads.hpp>
#include <adasum/exec/serial.hpp>
#include <adasum/machine_file.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "support/minimal_types.hpp"
#include "support/ranks.hpp"
#include "support/refusal.hpp"

namespace test_of_machine_file {

using namespace adasum::test;
using adasum::schedules::machine;

namespace {

/// A path of this process's own, removed at the end.
struct temporary_file {
  std::string path = (std::filesystem::temp_directory_path() / ("adasum_machine_" + std::to_string(getpid()))).string();
  explicit temporary_file(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  ~temporary_file() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

/// Constants whose last bits matter.
machine some_machine() {
  adasum::schedules::machine_numbers numbers;
  double value = 1e-7 / 3;
  for (double& one : numbers) one = value *= 1.1;
  return std::bit_cast<machine>(numbers);
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), with);
}

const adasum::serial_space exec;

}  // namespace

TEST_CASE("what is written is read, to the last bit") {
  const temporary_file file("");
  adasum::write_machine(some_machine(), file.path);
  CHECK(adasum::read_machine(file.path) == some_machine());
  CHECK(adasum::read_machine(exec, adasum::self_communicator{}, file.path) == some_machine());
}

TEST_CASE("comments, blank lines, spaces and lines of Windows do not matter, nor the order of keys") {
  const auto text = adasum::machine_text(some_machine());
  auto changed = replaced(text, "version = 1\n", "\n  version=1   # the first\r\n\n");
  const auto line = text.substr(text.find("across.latency"),
                                text.find('\n', text.find("across.latency")) + 1 - text.find("across.latency"));
  changed = replaced(changed, line, "") + "\t" + line.substr(0, line.size() - 1) + "  \t# seconds";
  const temporary_file file(changed);
  CHECK(adasum::read_machine(file.path) == some_machine());
}

TEST_CASE("a broken file: the error names the file, the line and the key") {
  const auto text = adasum::machine_text(machine{});
  const auto check = [&](const std::string& broken, const std::string& what) {
    CAPTURE(what);
    const temporary_file file(broken);
    check_refused([&] { adasum::read_machine(file.path); }, file.path);
    check_refused([&] { adasum::read_machine(file.path); }, what);
  };
  const auto change = [&](const std::string& from, const std::string& to) { return replaced(text, from, to); };
  // The text begins with two lines of comments; the version is on line 3, across.latency on line 4.
  check("", "the key version is missing");
  check("# nothing\n", "the key version is missing");
  check(change("version = 1\n", ""), "line 3: the first key must be version, not 'across.latency'");
  check(change("version = 1\n", "version = 2\n"), "line 3: version '2' is not known");
  check(change("across.latency = ", "across.latency "), "line 4: expected 'key = value', but there is no '='");
  check(change("across.latency", "across.latencies"), "line 4: the key 'across.latencies' is not known");
  check(change("across.latency = ", "across.latency = fast "), "line 4: across.latency: 'fast' is not a finite number");
  check(change("across.latency = ", "across.latency = -"), "line 4: across.latency: '-1e-06' is not a finite number");
  check(change("across.latency = ", "across.latency = nan # "), "line 4: across.latency: 'nan' is not a finite number");
  check(change("across.latency = ", "across.latency = inf # "), "line 4: across.latency: 'inf' is not a finite number");
  check(change("across.latency = ", "across.latency = 1e999 # "),
        "line 4: across.latency: '1e999' is not a finite number");
  check(change("across.latency = ", "across.latency = 1e-6s # "),
        "line 4: across.latency: '1e-6s' is not a finite number");
  check(change("across.latency = ", "across.latency = # "), "line 4: across.latency: needs 1 number");
  check(change("across.latency = ", "across.latency = 1 "), "line 4: across.latency: has more than 1 number");
  check(change("across.per_byte = ", "across.per_byte = 1 2 3 # "), "across.per_byte: needs 4 numbers");
  check(change("across.latency = ", "inside.latency = "), "line 9: the key inside.latency is given twice");
  check(text.substr(0, text.find("per_term")), "the key per_term is missing");
  check(std::string("\x7f"
                    "ELF\0\1",
                    6),
        "line 1: expected 'key = value', but there is no '='");
}

TEST_CASE("a file that is not there, a directory, and one that cannot be written") {
  check_refused([] { adasum::read_machine("/nowhere/at/all"); }, "/nowhere/at/all cannot be read: No such file");
  check_refused([] { adasum::read_machine("/"); }, "read");
  check_refused([] { adasum::write_machine(machine{}, "/nowhere/at/all"); },
                "/nowhere/at/all cannot be written: No such file");
  check_refused([] { adasum::write_machine(machine{.per_product = -1}, "/nowhere/at/all"); }, "per_product");
}

TEST_CASE("all ranks get what rank 0 reads; if that is broken, all of them get its message") {
  for (const int size : {2, 3, 5}) {
    const temporary_file good(adasum::machine_text(some_machine()));
    const auto read = [&](const adasum::thread_communicator& comm, const std::string& of_first) {
      return adasum::read_machine(exec, comm, comm.rank() == 0 ? of_first : "/of/another/rank");
    };
    for (const auto& one : results_of(on_ranks(size, [&](const auto& comm) { return read(comm, good.path); })))
      CHECK(one == some_machine());
    for (const auto& rank : on_ranks(size, [&](const auto& comm) { return read(comm, "/nowhere/at/all"); })) {
      const auto message = rank.message_of<adasum::agreement_error>().value_or("");
      CHECK(message.find("rank 0") != message.npos);
      CHECK(message.find("/nowhere/at/all cannot be read") != message.npos);
    }
  }
}

TEST_CASE("a communicator with no member that it need not have") {
  const temporary_file good(adasum::machine_text(some_machine()));
  for (const auto& rank : on_each(group_of<minimal_communicator>(3), [&](const minimal_communicator& comm) {
         return adasum::read_machine(minimal_space<float>(1), comm, good.path);
       }))
    CHECK(rank.value == some_machine());
}

TEST_CASE("the environment variable") {
  const temporary_file good(adasum::machine_text(some_machine()));
  const auto found = [] {
    return results_of(on_ranks(3, [](const auto& comm) { return adasum::machine_from_environment(exec, comm); }));
  };
  const auto check = [&](const std::optional<machine>& expected) {
    for (const auto& one : found()) CHECK(one == expected);
  };
  unsetenv("ADASUM_MACHINE");
  check({});
  setenv("ADASUM_MACHINE", "", 1);
  check({});
  setenv("ADASUM_MACHINE", good.path.c_str(), 1);
  check(some_machine());
  setenv("ADASUM_MACHINE", "/nowhere/at/all", 1);
  for (const auto& rank : on_ranks(3, [](const auto& comm) { return adasum::machine_from_environment(exec, comm); }))
    CHECK(rank.template message_of<adasum::agreement_error>().value_or("").find("/nowhere/at/all") !=
          std::string::npos);
  check_refused([] { adasum::machine_from_environment(exec, adasum::self_communicator{}); }, "/nowhere/at/all");
  unsetenv("ADASUM_MACHINE");
}

}  // namespace test_of_machine_file
