// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <adasum/core/error.hpp>

#include "bits.hpp"

namespace adasum::test {

/// How one rank's call ended, by the exceptions that the library documents.
enum class way { returned, bad_input, agreement_error, communication_error, other };

struct ending {
  way how = way::returned;
  std::string message;
  bool unchanged = true;  ///< whether the gradient holds the bytes from before
};

/// Runs call(gradient) and notes how it ended.
template <class T, class Call>
ending end_of(std::vector<T> gradient, Call&& call) {
  const auto before = gradient;
  ending result;
  const auto note = [&](way how, const std::exception& e) {
    result.how = how;
    result.message = e.what();
  };
  try {
    std::forward<Call>(call)(gradient);
  } catch (const bad_input& e) {
    note(way::bad_input, e);
  } catch (const agreement_error& e) {
    note(way::agreement_error, e);
  } catch (const communication_error& e) {
    note(way::communication_error, e);
  } catch (const std::exception& e) {
    note(way::other, e);
  }
  result.unchanged = same_bits(gradient, before);
  return result;
}

inline const char* to_string(way how) {
  switch (how) {
    case way::returned: return "returned";
    case way::bad_input: return "bad_input";
    case way::agreement_error: return "agreement_error";
    case way::communication_error: return "communication_error";
    case way::other: return "another exception";
  }
  return "unknown";
}

}  // namespace adasum::test
