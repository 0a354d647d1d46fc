// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Watches how a program uses MPI: a library that is loaded before MPI's (LD_PRELOAD) and stands between the two, by MPI's
// profiling interface. It says what is wrong in MPI_Finalize, on standard error, and the process then ends with status 1:
//
//   * a request that nobody has completed, or that was freed while it was active
//   * a buffer that changed while its message was in flight; buffers of two messages in flight that overlap, one of which is
//     received. Whoever reads a receive buffer too early reads NaN, or -1, and never a message that was there already
//   * a message that was sent on a communicator, and not received before that was freed
//   * a message that is longer than its receive buffer, unless ADASUM_MPI_USAGE says "truncation": two tests provoke it
//   * a communicator, an error handler or an attribute key that was made, and not freed. ADASUM_MPI_USAGE=keys allows that of
//     keys
//   * a tag that is not between 0 and MPI_TAG_UB
//   * calls that the thread level forbids: from two threads at once, or from another than the main one
//   * a call after MPI_Finalize: ends the process at once
//
// It knows the calls that the library makes; the test mpi_usage.every_call says when there is another.

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <cstddef>
#include <cstdlib>

#include "recorder.hpp"

namespace {

using namespace mpi_usage;

span_of_bytes bytes_of(const void* data, int count, MPI_Datatype type) {
  int size = 0;
  if (data == MPI_IN_PLACE || PMPI_Type_size(type, &size) != MPI_SUCCESS) return {};
  return {static_cast<const unsigned char*>(data), static_cast<std::size_t>(count) * static_cast<std::size_t>(size)};
}
int size_of(MPI_Comm comm) {
  int size = 0;
  PMPI_Comm_size(comm, &size);
  return size;
}

}  // namespace

extern "C" {

// ── beginning and end ──

int MPI_Init(int* argc, char*** argv) {
  const int code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) {
    int level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    recorder::get().began(level);
  }
  return code;
}
int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) recorder::get().began(*provided);
  return code;
}
int MPI_Finalize() {
  int code = MPI_SUCCESS;
  {
    const watched here("MPI_Finalize");
    code = PMPI_Finalize();  // which deletes attributes first: what that calls is allowed, and may free what was made
  }
  if (!recorder::get().end()) std::_Exit(1);
  return code;
}

// ── messages ──

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  const watched here("MPI_Isend");
  recorder::get().check_tag("MPI_Isend", tag, false);
  const int code = PMPI_Isend(buffer, count, type, to, tag, comm, request);
  if (code == MPI_SUCCESS) recorder::get().posted(*request, {"MPI_Isend", bytes_of(buffer, count, type), {}});
  return code;
}
int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  const watched here("MPI_Irecv");
  recorder::get().check_tag("MPI_Irecv", tag, true);
  const stand_in received(bytes_of(buffer, count, type));
  const int code = PMPI_Irecv(received.address(buffer), count, type, from, tag, comm, request);
  if (code == MPI_SUCCESS) recorder::get().posted(*request, {"MPI_Irecv", {}, received});
  return code;
}
int MPI_Iallgather(const void* from, int count, MPI_Datatype type, void* to, int each, MPI_Datatype type_of_each,
                   MPI_Comm comm, MPI_Request* request) {
  const watched here("MPI_Iallgather");
  const stand_in received(bytes_of(to, each * size_of(comm), type_of_each));
  const int code = PMPI_Iallgather(from, count, type, received.address(to), each, type_of_each, comm, request);
  if (code == MPI_SUCCESS)
    recorder::get().posted(*request, {"MPI_Iallgather", bytes_of(from, count, type), received});
  return code;
}
int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                   MPI_Request* request) {
  const watched here("MPI_Iallreduce");
  const stand_in received(bytes_of(to, count, type));
  const int code = PMPI_Iallreduce(from, received.address(to), count, type, op, comm, request);
  if (code == MPI_SUCCESS)
    recorder::get().posted(*request, {"MPI_Iallreduce", bytes_of(from, count, type), received});
  return code;
}
int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  const watched here("MPI_Ibcast");
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  const auto bytes = bytes_of(buffer, count, type);
  const auto received = rank == root ? stand_in() : stand_in(bytes);
  const int code = PMPI_Ibcast(received.address(buffer), count, type, root, comm, request);
  if (code == MPI_SUCCESS)
    recorder::get().posted(*request, {"MPI_Ibcast", rank == root ? bytes : span_of_bytes(), received});
  return code;
}

// ── their ends. After an error, MPI has completed the request as well ──

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const watched here("MPI_Wait");
  const MPI_Request one = *request;
  const int code = PMPI_Wait(request, status);
  recorder::get().completed(one, code);
  return code;
}
int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const watched here("MPI_Test");
  const MPI_Request one = *request;
  const int code = PMPI_Test(request, flag, status);
  if (code != MPI_SUCCESS || *flag) recorder::get().completed(one, code);
  return code;
}
int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  const watched here("MPI_Waitany");
  // MPI sets the one that has ended to null: which it was must be known before.
  map_of<int, MPI_Request> before;
  for (int i = 0; i < count; ++i) before[i] = requests[i];
  const int code = PMPI_Waitany(count, requests, index, status);
  if (*index != MPI_UNDEFINED) recorder::get().completed(before[*index], code);
  return code;
}
int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  const watched here("MPI_Testany");
  map_of<int, MPI_Request> before;
  for (int i = 0; i < count; ++i) before[i] = requests[i];
  const int code = PMPI_Testany(count, requests, index, flag, status);
  if ((code != MPI_SUCCESS || *flag) && *index != MPI_UNDEFINED) recorder::get().completed(before[*index], code);
  return code;
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const watched here("MPI_Waitall");
  map_of<int, MPI_Request> before;
  for (int i = 0; i < count; ++i) before[i] = requests[i];
  const int code = PMPI_Waitall(count, requests, statuses);
  for (const auto& [i, one] : before) recorder::get().completed(one, code);
  return code;
}
int MPI_Request_free(MPI_Request* request) {
  const watched here("MPI_Request_free");
  recorder::get().freed_while_active(*request);
  return PMPI_Request_free(request);
}
int MPI_Cancel(MPI_Request* request) {  // it must be completed all the same
  const watched here("MPI_Cancel");
  return PMPI_Cancel(request);
}

// ── what is made and freed ──

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* made) {
  const watched here("MPI_Comm_dup");
  const int code = PMPI_Comm_dup(comm, made);
  if (code == MPI_SUCCESS) recorder::get().made(*made, "MPI_Comm_dup");
  return code;
}
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  const watched here("MPI_Comm_split");
  const int code = PMPI_Comm_split(comm, color, key, made);
  if (code == MPI_SUCCESS) recorder::get().made(*made, "MPI_Comm_split");
  return code;
}
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  const watched here("MPI_Comm_split_type");
  const int code = PMPI_Comm_split_type(comm, type, key, info, made);
  if (code == MPI_SUCCESS) recorder::get().made(*made, "MPI_Comm_split_type");
  return code;
}
#ifdef MPIX_ERR_PROC_FAILED
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* made) {
  const watched here("MPIX_Comm_shrink");
  const int code = PMPIX_Comm_shrink(comm, made);
  if (code == MPI_SUCCESS) recorder::get().made(*made, "MPIX_Comm_shrink");
  return code;
}
int MPIX_Comm_revoke(MPI_Comm comm) {
  const watched here("MPIX_Comm_revoke");
  return PMPIX_Comm_revoke(comm);
}
int MPIX_Comm_agree(MPI_Comm comm, int* flag) {
  const watched here("MPIX_Comm_agree");
  return PMPIX_Comm_agree(comm, flag);
}
#endif
int MPI_Comm_free(MPI_Comm* comm) {
  const watched here("MPI_Comm_free");
  recorder::get().freed(*comm);
  return PMPI_Comm_free(comm);
}
int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler* handler) {
  const watched here("MPI_Comm_get_errhandler");
  recorder::get().count_error_handlers(1);
  return PMPI_Comm_get_errhandler(comm, handler);
}
int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function* function, MPI_Errhandler* handler) {
  const watched here("MPI_Comm_create_errhandler");
  recorder::get().count_error_handlers(1);
  return PMPI_Comm_create_errhandler(function, handler);
}
int MPI_Errhandler_free(MPI_Errhandler* handler) {
  const watched here("MPI_Errhandler_free");
  recorder::get().count_error_handlers(-1);
  return PMPI_Errhandler_free(handler);
}
int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* remove, int* key,
                           void* state) {
  const watched here("MPI_Comm_create_keyval");
  recorder::get().count_keys(1);
  return PMPI_Comm_create_keyval(copy, remove, key, state);
}
int MPI_Comm_free_keyval(int* key) {
  const watched here("MPI_Comm_free_keyval");
  recorder::get().count_keys(-1);
  return PMPI_Comm_free_keyval(key);
}

// ── for the thread level and the end alone ──

int MPI_Allgather(const void* from, int count, MPI_Datatype type, void* to, int each, MPI_Datatype type_of_each,
                  MPI_Comm comm) {
  const watched here("MPI_Allgather");
  return PMPI_Allgather(from, count, type, to, each, type_of_each, comm);
}
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const watched here("MPI_Bcast");
  return PMPI_Bcast(buffer, count, type, root, comm);
}
int MPI_Iprobe(int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const watched here("MPI_Iprobe");
  return PMPI_Iprobe(from, tag, comm, flag, status);
}
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  const watched here("MPI_Comm_set_errhandler");
  return PMPI_Comm_set_errhandler(comm, handler);
}
int MPI_Comm_get_attr(MPI_Comm comm, int key, void* value, int* found) {
  const watched here("MPI_Comm_get_attr");
  return PMPI_Comm_get_attr(comm, key, value, found);
}
int MPI_Comm_set_attr(MPI_Comm comm, int key, void* value) {
  const watched here("MPI_Comm_set_attr");
  return PMPI_Comm_set_attr(comm, key, value);
}
int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  const watched here("MPI_Comm_rank");
  return PMPI_Comm_rank(comm, rank);
}
int MPI_Comm_size(MPI_Comm comm, int* size) {
  const watched here("MPI_Comm_size");
  return PMPI_Comm_size(comm, size);
}
int MPI_Comm_test_inter(MPI_Comm comm, int* is_inter) {
  const watched here("MPI_Comm_test_inter");
  return PMPI_Comm_test_inter(comm, is_inter);
}

}  // extern "C"
