# The root of every frame.
#
# The first 16 bytes of a frame's first segment have the same meaning in every version: a struct
# pointer whose offset is 0, then version and magic. So peers of different versions recognise each
# other without reading further.
@0xab975fd38922c1dd;

using Cxx = import "/capnp/c++.capnp";
using Chains = import "replication.capnp";
using Data = import "push_pull.capnp";
using Control = import "control.capnp";
$Cxx.namespace("troupe::schema");

struct Envelope {
  version @0 :UInt32;  # wire::protocol_version
  magic @1 :UInt32;    # "TRPE"
  union {
    hello @2 :Control.Hello;
    rejection @3 :Control.Rejection;
    requests @4 :List(Data.Request);
    answers @5 :List(Data.Answer);
    report @6 :Control.StatusMessage;
    desired @7 :Control.DesiredState;
    peer @8 :Chains.Peer;
    lane @9 :Data.Lane;
  }
}
