// Runs MPI_Allreduce in place, as a contestant of all_reduce.py; mpirun starts it.
//
//   mpirun -n N all_reduce_mpi --sizes BYTES,... --name NAME
#include "bench/all_reduce/all_reduce_loop.hpp"

#include <mpi.h>

int main(int argc, char** argv) {
  troupe::bench::all_reduce_options options;
  options.ranks_are = "processes";
  options.contestant = "mpi";
  CLI::App app{"Adds up with MPI_Allreduce, as a contestant of all_reduce.py; started by mpirun, "
               "which says how many ranks",
               "all_reduce_mpi"};
  troupe::bench::add_options(app, options);
  app.add_option("--name", options.contestant, "Of these settings, for the results");
  CLI11_PARSE(app, argc, argv);
  MPI_Init(&argc, &argv);
  int ranks = 0, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  options.ranks = static_cast<std::size_t>(ranks);
  options.rank = static_cast<std::size_t>(rank);
  std::vector<float> numbers(std::ranges::max(options.sizes) / sizeof(float) + 16);
  troupe::bench::all_reduce_loop(options, numbers, [](std::span<float> part) {
    MPI_Allreduce(MPI_IN_PLACE, part.data(), static_cast<int>(part.size()), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
  });
  MPI_Finalize();
}
