// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "errors.hpp"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <adasum/core/error.hpp>

#ifndef ADASUM_WITHOUT_MPI
#include <adasum/communicators/mpi/error.hpp>
#endif

namespace adasum::c {
namespace {

/// A text of the heap, or one that needs no memory where there is none.
struct message {
  std::string text;
  const char* constant = nullptr;
};
message& message_of_thread() {
  thread_local message kept;
  return kept;
}

int keep(int code, const char* text) noexcept {
  auto& kept = message_of_thread();
  try {
    kept.text = text;
    kept.constant = nullptr;
  } catch (...) {
    kept.constant = "adasum: out of memory, also for the message of an error";
  }
  return code;
}

}  // namespace

int note_exception() noexcept {
  try {
    throw;
  } catch (const bad_input& error) {
    return keep(ADASUM_BAD_INPUT, error.what());
  } catch (const agreement_error& error) {
    return keep(ADASUM_AGREEMENT_ERROR, error.what());
  } catch (const nonfinite_error& error) {
    return keep(ADASUM_NONFINITE_ERROR, error.what());
  } catch (const shared_memory_error& error) {
    return keep(ADASUM_SHARED_MEMORY_ERROR, error.what());
  } catch (const timeout_error& error) {
    return keep(ADASUM_TIMEOUT_ERROR, error.what());
#ifndef ADASUM_WITHOUT_MPI
  } catch (const mpi_error& error) {
    return keep(ADASUM_MPI_ERROR, error.what());
#endif
  } catch (const communication_error& error) {
    return keep(ADASUM_COMMUNICATION_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return keep(ADASUM_OUT_OF_MEMORY, "adasum: out of memory");
  } catch (const std::length_error&) {  // of a container that was asked for more than any memory holds
    return keep(ADASUM_OUT_OF_MEMORY, "adasum: out of memory: more elements than any memory holds");
  } catch (const std::exception& error) {
    return keep(ADASUM_OTHER_ERROR, error.what());
  } catch (...) {
    return keep(ADASUM_OTHER_ERROR, "adasum: an exception of an unknown type");
  }
}

const char* last_message() noexcept {
  const auto& kept = message_of_thread();
  return kept.constant ? kept.constant : kept.text.c_str();
}

void require_pointer(const void* pointer, const char* call, const char* what) {
  if (!pointer) throw bad_input({call, ": ", what, " is a null pointer"});
}

}  // namespace adasum::c

extern "C" {

const char* adasum_last_error(void) { return adasum::c::last_message(); }

const char* adasum_error_name(int error) {
  switch (error) {
    case ADASUM_SUCCESS: return "ADASUM_SUCCESS";
    case ADASUM_BAD_INPUT: return "ADASUM_BAD_INPUT";
    case ADASUM_AGREEMENT_ERROR: return "ADASUM_AGREEMENT_ERROR";
    case ADASUM_NONFINITE_ERROR: return "ADASUM_NONFINITE_ERROR";
    case ADASUM_SHARED_MEMORY_ERROR: return "ADASUM_SHARED_MEMORY_ERROR";
    case ADASUM_COMMUNICATION_ERROR: return "ADASUM_COMMUNICATION_ERROR";
    case ADASUM_TIMEOUT_ERROR: return "ADASUM_TIMEOUT_ERROR";
    case ADASUM_MPI_ERROR: return "ADASUM_MPI_ERROR";
    case ADASUM_OUT_OF_MEMORY: return "ADASUM_OUT_OF_MEMORY";
    case ADASUM_OTHER_ERROR: return "ADASUM_OTHER_ERROR";
    default: return "unknown error";
  }
}

}  // extern "C"
