# The root of every frame. Protocol version 1.
#
# The first 16 bytes of a frame's first segment have the same meaning in every version: a struct
# pointer whose offset is 0, then version and magic. So peers of different versions can tell each
# other apart without reading further.
@0xab975fd38922c1dd;

using Cxx = import "/capnp/c++.capnp";
using Data = import "data.capnp";
using Control = import "control.capnp";
$Cxx.namespace("troupe::schema");

struct Envelope {
  version @0 :UInt32;  # wire::protocol_version
  magic @1 :UInt32;    # "TRPE"
  union {
    hello @2 :Control.Hello;
    refusal @3 :Control.Refusal;
    request @4 :Data.Request;
    reply @5 :Data.Reply;
    failure @6 :Data.FailureReply;
    report @7 :Control.Report;
    orders @8 :Control.Orders;
  }
}
