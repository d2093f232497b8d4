# Configurations of chains, and messages between their replicas. serialization/replication.hpp
# explains each field. In the second segment, each group begins at a multiple of 8. An entry has the
# values of its pushes, one behind the other (push_pull.capnp). A copy has the keys and steps of
# each slab, u64; then values and state of each block; then the rows of each slab.
@0xc5be1c7e47dcd26b;

using Cxx = import "/capnp/c++.capnp";
using Data = import "push_pull.capnp";
$Cxx.namespace("troupe::schema");

struct Config {
  config @0 :UInt64;
  generation @1 :UInt64;
  members @2 :List(Data.Member);
  joiner @3 :Data.Member;  # Null if there is none.
}

struct Record {
  active @0 :Config;
  baseCheckpoint @1 :UInt64;
  proposed @2 :Config;  # Null if there is none.
}

struct Status {
  generation @0 :UInt64;
  config @1 :UInt64;
  sealed @2 :UInt64;
  complete @3 :Bool;
  joinerSynced @4 :Bool;
  stalled @5 :Bool;
}

struct Entry {
  config @0 :UInt64;
  index @1 :UInt64;
  committed @2 :UInt64;
  pushes @3 :List(Data.PushRequest);
  tables @4 :List(UInt32);
}

# All entries of a configuration up to an index.
struct Mark {
  config @0 :UInt64;
  index @1 :UInt64;
}

struct Held {
  partition @0 :UInt32;
  table @1 :UInt32;
  number @2 :UInt64;
  version @3 :UInt64;
}

struct CopyRequest {
  config @0 :UInt64;
  part @1 :UInt32;
  held @2 :List(Held);
}

struct Block {
  table @0 :UInt32;
  block @1 :UInt64;
  version @2 :UInt64;
  steps @3 :UInt64;
  count @4 :UInt64;
  stateCount @5 :UInt64;
}

struct Slab {
  table @0 :UInt32;
  slab @1 :UInt64;
  version @2 :UInt64;
  count @3 :UInt64;
  rowFloats @4 :UInt64;
  steps @5 :Bool;
}

struct CopyPart {
  config @0 :UInt64;
  index @1 :UInt64;
  part @2 :UInt32;
  parts @3 :UInt32;
  partition @4 :UInt32;
  version @5 :UInt64;
  applied @6 :List(Data.BatchSet);
  blocks @7 :List(Block);
  slabs @8 :List(Slab);
  clockMax @9 :UInt64;
}

struct Peer {
  shard @0 :UInt32;
  from @1 :Data.Member;
  union {
    entry @2 :Entry;
    committed @3 :Mark;
    joined @4 :Mark;
    copyRequest @5 :CopyRequest;
    copyPart @6 :CopyPart;
  }
}
