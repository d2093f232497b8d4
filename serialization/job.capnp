# A job as bytes: in the coordinator's desired states, and in files. Format version 1.
#
# Fields are only ever appended, with the next number; an unused field keeps its place. Enumerations
# are numbers of the C++ enumerations named beside them.
@0xd9ce958139ae6818;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::schema");

struct Consistency {
  mode @0 :UInt8;  # consistency_mode
  stalenessClocks @1 :UInt32;
}

struct Optimizer {
  kind @0 :UInt8;  # optimizer_kind
  learningRate @1 :Float32;
  momentum @2 :Float32;
  beta2 @3 :Float32;
  epsilon @4 :Float32;
  weightDecay @5 :Float32;
  clipValue @6 :Float32;
  clipNorm @7 :Float32;
  scaleByStaleness @8 :Bool;
  l1 @9 :Float32;
  beta @10 :Float32 = 1;
  function @11 :Text;
  parameters @12 :List(Float32);
  functionState @13 :UInt32;
  fullRateStaleness @14 :Float32 = 1;  # with scaleByStaleness only
}

struct Initializer {
  kind @0 :UInt8;  # initializer_kind
  scale @1 :Float32;
  zeros @2 :UInt32;
}

struct Table {
  name @0 :Text;
  shape @1 :List(UInt64);
  sync @2 :Consistency;
  optimizer @3 :Optimizer;
  init @4 :Initializer;
  kind @5 :UInt8;  # table_kind
  width @6 :UInt32;
  frozen @7 :Bool;
  valuesChecksum @8 :UInt32;
}

struct OwnOption {
  name @0 :Text;
  value @1 :Text;
}

struct Job {
  name @0 :Text;
  seed @1 :UInt64;
  partitions @2 :UInt32;
  servers @3 :UInt32;
  workers @4 :UInt32;
  samples @5 :UInt64;
  batchSamples @6 :UInt32;
  epochs @7 :UInt64;
  tables @8 :List(Table);
  replicas @9 :UInt32;  # 0 means 1
  shards @10 :UInt32;
  backupWorkers @11 :UInt32;
  durability @12 :UInt8;  # durability_mode
  ownStore @13 :Bool;
  filesChecksum @14 :UInt64;  # 0: none, or unknown
  ownOptions @15 :List(OwnOption);
  actors @16 :UInt32;
  gossip @17 :Bool;
}

# The root of a job's file.
struct StoredJob {
  version @0 :UInt32;  # job_format_version
  magic @1 :UInt32;    # "TRPJ"
  job @2 :Job;
}
