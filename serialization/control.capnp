# The control path: whole statuses of members (StatusMessage), their desired states (DesiredState), and the
# messages that open a link. serialization/messages.hpp explains each field.
@0x9fa5ed2a43180fc5;

using Cxx = import "/capnp/c++.capnp";
using Chains = import "replication.capnp";
using Data = import "push_pull.capnp";
using Jobs = import "job.capnp";
$Cxx.namespace("troupe::schema");

# -- messages that open a link --

# The protocol version of a hello is its envelope's.
struct Hello {
  job @0 :UInt64;
  secret @1 :UInt64;
  from @2 :Data.Member;
  reads @3 :UInt32;  # encoding_set; 0 if the peer lacks the field: it reads none
  sends @4 :UInt32;  # encoding_set; 0 if the peer lacks the field: it sends none
  probes @5 :List(FunctionProbe);
}

struct FunctionProbe {
  function @0 :Text;
  crc32c @1 :UInt32;
}

struct Rejection {
  why @0 :Data.Failure;
}

# -- shared by StatusMessage and DesiredState --

struct Histogram {
  counts @0 :List(UInt64);
  sum @1 :UInt64;
  max @2 :UInt64;
}

struct Lease {
  id @0 :UInt64;
  first @1 :UInt64;
  count @2 :UInt32;
  stride @3 :UInt32;
}

struct ClockEntry {
  worker @0 :UInt32;
  incarnation @1 :UInt64;
  clock @2 :UInt64;
  known @3 :Bool;
}

struct ProgramNote {
  name @0 :Text;
  count @1 :UInt64;
  isLine @2 :Bool;
}

struct PortCounters {
  port @0 :Text;
  parcels @1 :UInt64;
  bytes @2 :UInt64;
  lost @3 :UInt64;
  longestWaitUs @4 :UInt64;
}

struct WorkerCounters {
  pushesSent @0 :UInt64;
  pushesAcknowledged @1 :UInt64;
  pushesRefused @2 :UInt64;
  windowWaitUs @3 :UInt64;
  samples @4 :UInt64;
  bytesSent @5 :UInt64;
  bytesReceived @6 :UInt64;
  waitUs @7 :UInt64;
  lossSum @8 :Float64;
  lossCount @9 :UInt64;
  wireBytesSent @10 :UInt64;
  wireBytesReceived @11 :UInt64;
  samplesComputed @12 :UInt64;
  batchesComputed @13 :UInt64;
  requestTimes @14 :Histogram;
  leftOut @15 :UInt64;
  pushesSummed @16 :UInt64;
  sums @17 :UInt64;
  deviceSums @18 :UInt64;
  notes @19 :List(ProgramNote);
  channelWaitUs @20 :UInt64;
  ports @21 :List(PortCounters);
}

struct ServerCounters {
  applied @0 :UInt64;
  duplicates @1 :UInt64;
  refused @2 :UInt64;
  pulls @3 :UInt64;
  waitingPulls @4 :UInt64;
  bytesSent @5 :UInt64;
  bytesReceived @6 :UInt64;
  stalenessVersions @7 :Histogram;
  stalenessClocks @8 :Histogram;
  notes @9 :List(ProgramNote);
}

struct ActorCounters {
  ports @0 :List(PortCounters);
  notes @1 :List(ProgramNote);
  requests @2 :WorkerCounters;  # Null if all are zero.
}

# -- StatusMessage: the status of a member --

struct LeaseProgress {
  lease @0 :Lease;
  done @1 :List(UInt64);
}

struct WorkerStatus {
  generation @0 :UInt64;
  leases @1 :List(LeaseProgress);
  clock @2 :UInt64;
  counters @3 :WorkerCounters;
  removed4 @4 :Text;
  host @5 :Text;
  failure @6 :Data.Failure;  # Null if there is none, here and below.
}

struct FileEntry {
  name @0 :Text;
  sizeBytes @1 :UInt64;
  crc32c @2 :UInt32;
}

struct CheckpointPart {
  checkpoint @0 :UInt64;
  shard @1 :UInt32;
  files @2 :List(FileEntry);
  version @3 :UInt64;
}

struct ReplicaStatus {
  shard @0 :UInt32;
  status @1 :Chains.Status;
  removed2 @2 :Text;
  unreadable @3 :UInt64;
  part @4 :CheckpointPart;
  checkpointFailed @5 :UInt64;
  checkpointFailure @6 :Text;
  applied @7 :Data.BatchSet;
  clocks @8 :List(ClockEntry);
  version @9 :UInt64;
  recovered @10 :Bool;
  checksums @11 :List(ValueChecksum);
  failure @12 :Data.Failure;
}

struct ValueChecksum {
  version @0 :UInt64;
  crc32c @1 :UInt32;
}

struct ServerStatus {
  removed0 @0 :Text;
  clockNs @1 :UInt64;
  chains @2 :List(ReplicaStatus);
  counters @3 :ServerCounters;
}

struct ObserverStatus {
  deaths @0 :List(Data.Member);
  done @1 :Bool;
  stop @2 :Bool;
  removed3 @3 :Text;
  add @4 :List(UInt32);
  drain @5 :List(UInt32);
  failure @6 :Data.Failure;
}

struct ActorStatus {
  counters @0 :ActorCounters;
  host @1 :Text;
  failure @2 :Data.Failure;
  stopped @3 :Bool;
}

struct StatusMessage {
  from @0 :Data.Member;
  job @1 :UInt64;
  sequence @2 :UInt64;
  rssBytesMax @3 :UInt64;
  union {
    worker @4 :WorkerStatus;
    server @5 :ServerStatus;
    observer @6 :ObserverStatus;
    actor @8 :ActorStatus;
  }
  address @7 :Text;
}

# -- DesiredState: the desired state of a member --

struct ChainEntry {
  shard @0 :UInt32;
  head @1 :Data.Member;
  removed2 @2 :Text;
  serving @3 :Bool;
  removed4 @4 :List(MemberAddress);
  others @5 :List(Data.Member);
}

struct View {
  config @0 :UInt64;
  generation @1 :UInt64;
  chains @2 :List(ChainEntry);
  shardOf @3 :List(UInt32);
}

struct DesiredWorker {
  view @0 :View;
  leases @1 :List(Lease);
  startClock @2 :UInt64;
  admitted @3 :Bool;
}

struct MemberAddress {
  member @0 :Data.Member;
  address @1 :Text;
}

struct DesiredChain {
  shard @0 :UInt32;
  record @1 :Chains.Record;
}

struct DesiredServer {
  job @0 :Jobs.Job;  # Null if there is none yet.
  generation @1 :UInt64;
  chains @2 :List(DesiredChain);
  shardOf @3 :List(UInt32);
  removed4 @4 :List(MemberAddress);
  heardNs @5 :UInt64;
  workers @6 :List(ClockEntry);
  checkpoint @7 :UInt64;
  checkpointClock @8 :UInt64;
}

struct DesiredActor {
  view @0 :View;
  windDown @1 :Bool;
}

struct MemberStatus {
  member @0 :Data.Member;
  state @1 :UInt8;  # member_state
  rssBytesMax @2 :UInt64;
  clock @3 :UInt64;
  updatesRolledBack @4 :UInt64;
  worker @5 :WorkerCounters;
  server @6 :ServerCounters;
  actor @7 :ActorCounters;
}

struct JobEvent {
  kind @0 :UInt16;  # event_kind
  fields @1 :List(Field);

  struct Field {
    name @0 :Text;
    union {
      count @1 :UInt64;
      number @2 :Float64;
      text @3 :Text;
    }
  }
}

struct JobStatus {
  view @0 :View;
  phase @1 :UInt8;  # job_phase
  batchesDone @2 :UInt64;
  checkpoint @3 :UInt64;
  members @4 :List(MemberStatus);
  eventTexts @5 :List(Text);  # Read only: written before events had kinds.
  eventsTotal @6 :UInt64;
  servers @7 :List(UInt32);
  draining @8 :List(UInt32);
  job @9 :Jobs.Job;  # Null if not told.
  coordinator @10 :UInt32;
  directoryMark @11 :UInt64;
  events @12 :List(JobEvent);
}

struct DesiredState {
  to @0 :Data.Member;
  term @1 :UInt64;
  sequence @2 :UInt64;
  stop @3 :Bool;
  removed4 @4 :Text;
  union {
    worker @5 :DesiredWorker;
    server @6 :DesiredServer;
    observer @7 :JobStatus;
    actor @10 :DesiredActor;
  }
  failure @8 :Data.Failure;
  listeners @9 :List(MemberAddress);
}
