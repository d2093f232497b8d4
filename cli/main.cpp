// The program `troupe`: what there is to do around a job.
#include "cli/commands.hpp"

int main(int argc, char** argv) { return troupe::run_commands(argc, argv); }
