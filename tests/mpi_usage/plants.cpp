// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//     mpirun -n 2 mpi_usage_plants NAME
//
// Uses MPI wrongly, in one way that recorder.cpp must find. Between two ranks, both of which do it.

#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

namespace {

int peer() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return 1 - rank;
}

/// One number each way, on a communicator.
struct message {
  MPI_Comm comm;
  int out = 1, in = 0;
  MPI_Request sent{}, received{};

  explicit message(MPI_Comm on, int tag = 0) : comm(on) {
    MPI_Irecv(&in, 1, MPI_INT, peer(), tag, comm, &received);
    MPI_Isend(&out, 1, MPI_INT, peer(), tag, comm, &sent);
  }
  void wait() {
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Wait(&received, MPI_STATUS_IGNORE);
  }
};

MPI_Comm duplicate() {
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  return made;
}

int plant(std::string_view name) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (name == "nothing") {
    message(MPI_COMM_WORLD).wait();
    auto comm = duplicate();
    MPI_Comm_free(&comm);
  } else if (name == "lost-request") {
    static message one(MPI_COMM_WORLD);
  } else if (name == "changed-buffer") {
    static message one(MPI_COMM_WORLD);
    one.out = 2;
    one.wait();
  } else if (name == "changed-receive-buffer") {
    static message one(MPI_COMM_WORLD);
    one.in = 2;
    one.wait();
  } else if (name == "early-read") {
    message one(MPI_COMM_WORLD, 0), later(MPI_COMM_WORLD, 1);
    later.wait();  // so the other one has arrived, too
    std::puts(one.in == one.out ? "read without waiting" : "no message before the wait");
    one.wait();
  } else if (name == "overlap") {
    int buffer = 0, out[] = {1, 2};
    MPI_Request all[4];
    for (int i = 0; i < 2; ++i) MPI_Irecv(&buffer, 1, MPI_INT, peer(), 0, MPI_COMM_WORLD, &all[i]);
    for (int i = 0; i < 2; ++i) MPI_Isend(&out[i], 1, MPI_INT, peer(), 0, MPI_COMM_WORLD, &all[2 + i]);
    MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
  } else if (name == "unreceived") {
    auto comm = duplicate();
    const int out = 1;
    MPI_Request sent{};
    MPI_Isend(&out, 1, MPI_INT, peer(), 0, comm, &sent);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    for (int turns = 0, waiting = 0; !waiting && turns < 1000000; ++turns)
      MPI_Iprobe(peer(), 0, comm, &waiting, MPI_STATUS_IGNORE);
    MPI_Comm_free(&comm);
  } else if (name == "truncation") {
    int in = 0;
    const int out[] = {1, 2};
    MPI_Request sent{}, received{};
    MPI_Irecv(&in, 1, MPI_INT, peer(), 0, MPI_COMM_WORLD, &received);
    MPI_Isend(out, 2, MPI_INT, peer(), 0, MPI_COMM_WORLD, &sent);
    MPI_Status status;
    MPI_Wait(&received, &status);
    MPI_Wait(&sent, &status);
  } else if (name == "tag") {
    int in = 0;
    MPI_Request received{};
    MPI_Irecv(&in, 1, MPI_INT, peer(), -7, MPI_COMM_WORLD, &received);
  } else if (name == "freed-request") {
    static message one(MPI_COMM_WORLD);
    MPI_Request_free(&one.received);
    MPI_Wait(&one.sent, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
  } else if (name == "lost-key") {
    int key = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, nullptr);
  } else if (name == "lost-communicator") {
    duplicate();
  } else if (name == "lost-error-handler") {
    MPI_Errhandler handler{};
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
  } else if (name == "two-threads") {
    // One thread of rank 0 waits for a message while another one asks for the rank.
    int number = 0;
    MPI_Request one{};
    using namespace std::chrono_literals;
    if (peer() == 0) {
      std::this_thread::sleep_for(400ms);
      MPI_Isend(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &one);
      MPI_Wait(&one, MPI_STATUS_IGNORE);
    } else {
      MPI_Irecv(&number, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &one);
      std::thread other([&] { MPI_Wait(&one, MPI_STATUS_IGNORE); });
      std::this_thread::sleep_for(100ms);
      peer();
      other.join();
    }
  } else if (name == "other-thread") {
    std::thread([] { peer(); }).join();
  } else if (name == "after-finalize") {
  } else {
    std::fprintf(stderr, "mpi_usage_plants: no plant '%s'\n", std::string(name).c_str());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc == 2 ? argv[1] : "";
  int level = 0;
  MPI_Init_thread(&argc, &argv, name == "two-threads" ? MPI_THREAD_SERIALIZED : MPI_THREAD_FUNNELED, &level);
  const int status = plant(name);
  MPI_Finalize();
  if (name == "after-finalize") peer();
  return status;
}
