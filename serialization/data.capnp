# The data path: pushes, pulls and their answers. Protocol version 1.
#
# The values of pieces are not here but in the frame's second segment, in the order of the pieces,
# one behind the other; where a piece begins follows from the counts of those before it.
@0xa2c4ae3afdec5e04;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Range {
  table @0 :UInt32;
  first @1 :UInt64;
  count @2 :UInt64;
}

struct Step {
  worker @0 :UInt32;
  incarnation @1 :UInt64;
  generation @2 :UInt64;
  batch @3 :UInt64;
  clock @4 :UInt64;
}

struct Failure {
  code @0 :UInt8;  # errc
  text @1 :Text;
}

struct PushRequest {
  request @0 :UInt64;
  step @1 :Step;
  tables @2 :List(UInt32);
  baseVersion @3 :UInt64;
  gradientNorm @4 :Float32;
  pieces @5 :List(Range);
}

struct PushReply {
  request @0 :UInt64;
  version @1 :UInt64;
  duplicate @2 :Bool;
}

struct PullRequest {
  request @0 :UInt64;
  step @1 :Step;
  latest @2 :Bool;
  ranges @3 :List(Range);
}

struct PullReply {
  request @0 :UInt64;
  version @1 :UInt64;
  pieces @2 :List(Range);
}

struct FailureReply {
  request @0 :UInt64;
  why @1 :Failure;
}
