# The messages of a lane: the parcels of one sender to one receiver of a channel, and their credit.
# serialization/channel.hpp explains each field.
#
# The floats of a parcel's tensors are in the frame's second segment, one behind the other, in the
# order of the tensors.
@0xd83b1c9be4f0a617;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct ChannelOpen {
  channel @0 :Text;
  session @1 :UInt64;
  head @2 :Text;
}

struct Parcel {
  session @0 :UInt64;
  sequence @1 :UInt64;
  head @2 :Data;
  tensors @3 :List(UInt64);  # floats of each
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
