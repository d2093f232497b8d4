// The program `troupe`: tools for jobs.
#include "cli/commands.hpp"

int main(int argc, char** argv) { return troupe::run_commands(argc, argv); }
