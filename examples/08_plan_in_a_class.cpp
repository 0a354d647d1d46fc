// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A plan and a communicator as members of a class. Both start empty, and stay empty on a rank that does not train:
//     mpirun -n 3 08_plan_in_a_class
#include <adasum/mpi.hpp>

#include <cmath>
#include <cstddef>
#include <iostream>
#include <utility>
#include <vector>

/// A linear model y = w·x, trained by every rank that has joined a group of workers.
class model {
 public:
  explicit model(std::size_t features) : weights_(features), gradient_(features) {}

  /// Collective over `workers`. A rank that was left out passes MPI_COMM_NULL: its communicator and plan stay empty.
  void join(MPI_Comm workers) {
    comm_ = adasum::mpi_communicator{workers};
    if (comm_) plan_ = adasum::plan_allreduce<float>(adasum::serial_space{}, comm_, gradient_.size());
  }
  bool is_training() const { return !plan_.is_empty(); }

  /// One step on this rank's sample, together with the other workers.
  void step(const std::vector<float>& x, float y, float rate) {
    const float error = value_at(x) - y;
    for (std::size_t i = 0; i < x.size(); ++i) gradient_[i] = error * x[i];
    plan_(gradient_);
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= rate * gradient_[i];
  }

  float value_at(const std::vector<float>& x) const {
    float sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += weights_[i] * x[i];
    return sum;
  }
  std::vector<float>& weights() { return weights_; }

 private:
  std::vector<float> weights_, gradient_;
  adasum::mpi_communicator comm_;       // empty until join()
  adasum::allreduce_plan<float> plan_;  // the same; its default template arguments are those of plan_allreduce with MPI
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  bool as_expected = true;
  {  // plans and communicators end before MPI_Finalize
    constexpr std::size_t features = 4;
    const bool trains = ranks == 1 || rank < ranks - 1;  // the last rank only watches
    MPI_Comm workers = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, trains ? 0 : MPI_UNDEFINED, rank, &workers);

    model mine(features);
    mine.join(workers);
    // In each step the workers see different features, so their gradients are orthogonal, and Adasum adds them.
    for (int step = 0; trains && step < 100; ++step) {
      const auto seen = static_cast<std::size_t>(rank + step) % features;
      std::vector<float> x(features);
      x[seen] = 1;
      mine.step(x, static_cast<float>(seen + 1), 0.5f);  // the weights to be found are 1, 2, 3, 4
    }
    MPI_Bcast(mine.weights().data(), static_cast<int>(features), MPI_FLOAT, 0, MPI_COMM_WORLD);

    for (std::size_t i = 0; i < features; ++i)
      as_expected &= std::abs(mine.weights()[i] - static_cast<float>(i + 1)) < 1e-3f;
    as_expected &= mine.is_training() == trains;
    if (rank == ranks - 1) {
      std::cout << "rank " << rank << (mine.is_training() ? " trained" : " only watched") << "; the weights are";
      for (const float weight : mine.weights()) std::cout << ' ' << weight;
      std::cout << '\n';
    }

    model moved = std::move(mine);  // with its plan
    as_expected &= moved.is_training() == trains;
    if (workers != MPI_COMM_NULL) MPI_Comm_free(&workers);
  }
  MPI_Finalize();
  return as_expected ? 0 : 1;
}
