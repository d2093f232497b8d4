# The data path: push and pull requests and their replies, and parcels.
#
# The values of pieces are not here but in the frame's second segment, one behind the other, in the
# order of the pieces. The counts of earlier pieces tell where a piece begins. Each struct's values
# begin at a multiple of 8, in this order: the keys of its rows, u64, list by list, without the
# lists that Request.keys omits; the values of its pieces; the values of its rows; then, from a
# multiple of 8 on, the bytes of its packed pieces, each a multiple of 8.
@0xa2c4ae3afdec5e04;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Member {
  role @0 :UInt8;  # role
  index @1 :UInt32;
  incarnation @2 :UInt64;
}

struct BatchSet {
  floor @0 :UInt64;
  words @1 :List(UInt64);
}

struct Range {
  table @0 :UInt32;
  first @1 :UInt64;
  count @2 :UInt64;
}

# Rows of a sparse table.
struct Rows {
  table @0 :UInt32;
  width @1 :UInt32;
  count @2 :UInt64;
}

struct Step {
  worker @0 :UInt32;
  incarnation @1 :UInt64;
  generation @2 :UInt64;
  batch @3 :UInt64;
  clock @4 :UInt64;
  isPartial @5 :Bool;
}

struct Failure {
  code @0 :UInt8;  # errc
  text @1 :Text;
}

# PullReply in fewer bytes (encoding.hpp).
struct Packed {
  where @0 :Range;
  how @1 :UInt8;  # encoding, not f32
  bytes @2 :UInt32;
}

struct PushRequest {
  step @0 :Step;
  tables @1 :List(UInt32);
  baseVersion @2 :UInt64;
  gradientNorm @3 :Float32;
  pieces @4 :List(Range);
  rows @5 :List(Rows);  # keys and values
  packed @6 :List(Packed);
  others @7 :List(Step);
}

struct PullRequest {
  step @0 :Step;
  latest @1 :Bool;
  ranges @2 :List(Range);
  rows @3 :List(Rows);  # keys
  delta @4 :Bool;
  stamps @5 :List(UInt64);  # one for each range; empty: all 0
  seenGeneration @6 :UInt64;
  seenVersion @7 :UInt64;
  anywhere @8 :Bool;
  packedAs @9 :UInt8;  # encoding, at most int8
  others @10 :List(Step);
}

struct PushReply {
  version @0 :UInt64;
  duplicate @1 :Bool;
}

struct PullReply {
  version @0 :UInt64;
  pieces @1 :List(Range);
  rows @2 :List(Rows);  # values
  stamps @3 :List(UInt64);  # one for each piece; empty: all 0
  unchanged @4 :List(Range);
  packed @5 :List(Packed);
  packedStamps @6 :List(UInt64);  # one for each packed piece; empty: all 0
}

# A null pointer below means: the request has no push, the reply has no values, ...

struct Request {
  number @0 :UInt64;
  push @1 :PushRequest;
  pull @2 :PullRequest;
  # One for each list of rows, the push's lists first; empty: all are brought. 0: brought; 4 n + 1:
  # brought, to be kept in slot n; 4 n + 2: omitted, it is in slot n.
  keys @3 :List(UInt32);
  forgotten @4 :List(UInt32);  # slots freed before the request is read
  shard @5 :UInt32;
}

struct Reply {
  number @0 :UInt64;
  pushed @1 :PushReply;
  pulled @2 :PullReply;
  generation @3 :UInt64;
}

struct FailureReply {
  number @0 :UInt64;
  why @1 :Failure;
}

struct Answer {
  union {
    reply @0 :Reply;
    failure @1 :FailureReply;
  }
}

# -- lanes: the parcels of one sender to one receiver of a channel, and their credit (channel.hpp) --

struct ChannelOpen {
  channel @0 :Text;
  session @1 :UInt64;
  head @2 :Text;
  window @3 :UInt32;
}

# The values of its tensors are in the second segment, one behind the other.
struct Parcel {
  session @0 :UInt64;
  sequence @1 :UInt64;
  head @2 :Data;
  tensors @3 :List(UInt64);  # number of values of each
}

struct ParcelsTaken {
  session @0 :UInt64;
  count @1 :UInt64;
}

struct Lane {
  union {
    open @0 :ChannelOpen;
    parcel @1 :Parcel;
    taken @2 :ParcelsTaken;
  }
}
