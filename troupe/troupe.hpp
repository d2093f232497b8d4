// All that a first program needs: trainers and evaluators, tables, graphs, and the command line.
// It includes neither CAF nor CLI11, so programs compile fast.
//
// A program with a stage of its own also includes actors/protocol/worker/stage.hpp.
#pragma once

#include "actors/graph/program.hpp"
#include "actors/graph/run.hpp"
