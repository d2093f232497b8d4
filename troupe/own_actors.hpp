// A program with actors of its own, or with ports of its trainers, includes this header too. The
// header includes no CAF. Guide: docs/guide/your-own-actor.md.
#pragma once

#include "actors/training/own_actor.hpp"
#include "actors/training/ports.hpp"
