// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "communicators.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <adasum/communicators/mpi/error.hpp>
#include <adasum/communicators/mpi/handle.hpp>

namespace adasum::c {
namespace {

/// What MPI keeps with a communicator of the caller's.
struct attribute {
  // Both are handles to the same ranks; empty once MPI is about to be finalised.
  mpi_communicator comm;
  any_communicator any;
};

/// Of all attributes. It stays until the process ends: MPI may call back late.
struct registry {
  std::mutex mutex;
  int key = MPI_KEYVAL_INVALID;
  int key_of_end = MPI_KEYVAL_INVALID;
  std::vector<attribute*>
      all;  // in the order in which they were made, which ranks that share communicators have in common
};
registry& known() {
  static auto* const one = new registry;
  return *one;
}

int forget(MPI_Comm, int, void* value, void*) {
  auto* const old = static_cast<attribute*>(value);
  {
    const std::scoped_lock lock(known().mutex);
    std::erase(known().all, old);
  }
  delete old;
  return MPI_SUCCESS;
}

/// MPI_Finalize begins with the attributes of MPI_COMM_SELF, while all of MPI still works: then what was duplicated is freed.
int forget_all(MPI_Comm, int, void*, void*) {
  std::vector<attribute*> all;
  {
    const std::scoped_lock lock(known().mutex);
    all.swap(known().all);
  }
  for (auto* const one : all) *one = {};
  return MPI_SUCCESS;
}

/// The key under which communicators have their attribute.
int key() {
  const std::scoped_lock lock(known().mutex);
  auto& here = known();
  using detail::mpi::check;
  if (here.key == MPI_KEYVAL_INVALID)
    check("MPI_Comm_create_keyval", MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &here.key, nullptr));
  // A program that has no MPI_COMM_SELF, since it uses sessions, frees its communicators itself.
  if (here.key_of_end == MPI_KEYVAL_INVALID && detail::mpi::initialized()) {
    check("MPI_Comm_create_keyval",
          MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget_all, &here.key_of_end, nullptr));
    check("MPI_Comm_set_attr", MPI_Comm_set_attr(MPI_COMM_SELF, here.key_of_end, nullptr));
  }
  return here.key;
}

}  // namespace

namespace {

const attribute& attribute_of(MPI_Comm comm, const char* call) {
  if (comm == MPI_COMM_NULL) throw bad_input({call, ": the communicator is MPI_COMM_NULL"});
  detail::mpi::require_initialized(comm);
  const int own = key();
  void* value = nullptr;
  int is_there = 0;
  detail::mpi::check("MPI_Comm_get_attr", MPI_Comm_get_attr(comm, own, &value, &is_there));
  if (is_there) {
    const auto& found = *static_cast<attribute*>(value);
    if (!found.comm) throw bad_input({call, ": MPI is being finalised"});
    return found;
  }
  auto made = std::make_unique<attribute>();
  made->comm = mpi_communicator(comm);
  made->any = any_communicator(made->comm);
  {
    const std::scoped_lock lock(known().mutex);
    known().all.push_back(made.get());
  }
  if (const int error = MPI_Comm_set_attr(comm, own, made.get()); error != MPI_SUCCESS) {
    const std::scoped_lock lock(known().mutex);
    std::erase(known().all, made.get());
    throw mpi_error("MPI_Comm_set_attr", error);
  }
  return *made.release();
}

}  // namespace

const any_communicator& communicator_of(MPI_Comm comm, const char* call) { return attribute_of(comm, call).any; }
const mpi_communicator& mpi_communicator_of(MPI_Comm comm, const char* call) { return attribute_of(comm, call).comm; }

void require_not_finalized(const char* call) {
  if (detail::mpi::finalized()) throw bad_input({call, ": MPI has already been finalised"});
}

}  // namespace adasum::c
