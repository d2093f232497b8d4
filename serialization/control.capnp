# The control path: whole states of members (report) and what they should become (orders), and what
# opens a link. Protocol version 2. serialization/messages.hpp says what each field means.
@0x9fa5ed2a43180fc5;

using Cxx = import "/capnp/c++.capnp";
using Data = import "data.capnp";
using Jobs = import "job.capnp";
$Cxx.namespace("troupe::schema");

struct Member {
  role @0 :UInt8;  # role
  index @1 :UInt32;
  incarnation @2 :UInt64;
}

# -- what opens a link --

# The protocol version of a hello is its envelope's.
struct Hello {
  job @0 :UInt64;
  secret @1 :UInt64;
  from @2 :Member;
}

struct Refusal {
  why @0 :Data.Failure;
}

# -- shared by reports and orders --

struct BatchSet {
  floor @0 :UInt64;
  words @1 :List(UInt64);
}

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
}

# -- report --

struct LeaseProgress {
  lease @0 :Lease;
  done @1 :List(UInt64);
}

struct WorkerReport {
  generation @0 :UInt64;
  leases @1 :List(LeaseProgress);
  clock @2 :UInt64;
  counters @3 :WorkerCounters;
  failed @4 :Text;
}

struct FileEntry {
  name @0 :Text;
  sizeBytes @1 :UInt64;
  crc32c @2 :UInt32;
}

struct CheckpointPart {
  checkpoint @0 :UInt64;
  server @1 :UInt32;
  files @2 :List(FileEntry);
  version @3 :UInt64;
}

struct ServerReport {
  address @0 :Text;
  assignment @1 :UInt64;
  failed @2 :Text;
  generation @3 :UInt64;
  marks @4 :BatchSet;
  clocks @5 :List(ClockEntry);
  unused6 @6 :UInt64;
  part @7 :CheckpointPart;
  checkpointFailed @8 :UInt64;
  checkpointFailure @9 :Text;
  version @10 :UInt64;
  counters @11 :ServerCounters;
  unreadable @12 :UInt64;
}

struct ObserverReport {
  deaths @0 :List(Member);
  done @1 :Bool;
  stop @2 :Bool;
  failed @3 :Text;
}

struct Report {
  from @0 :Member;
  job @1 :UInt64;
  sequence @2 :UInt64;
  rssBytesMax @3 :UInt64;
  union {
    worker @4 :WorkerReport;
    server @5 :ServerReport;
    observer @6 :ObserverReport;
  }
}

# -- orders --

struct ServerEntry {
  server @0 :UInt32;
  incarnation @1 :UInt64;
  address @2 :Text;
  serving @3 :Bool;
}

struct View {
  epoch @0 :UInt64;
  generation @1 :UInt64;
  servers @2 :List(ServerEntry);
  serverOf @3 :List(UInt32);
}

struct WorkerOrders {
  view @0 :View;
  leases @1 :List(Lease);
  startClock @2 :UInt64;
  admitted @3 :Bool;
}

struct ServerOrders {
  job @0 :Jobs.Job;  # Null: none yet.
  assignment @1 :UInt64;
  generation @2 :UInt64;
  partitions @3 :List(UInt32);
  restore @4 :UInt64;
  workers @5 :List(ClockEntry);
  checkpoint @6 :UInt64;
  checkpointClock @7 :UInt64;
}

struct MemberStatus {
  member @0 :Member;
  state @1 :UInt8;  # member_state
  rssBytesMax @2 :UInt64;
  clock @3 :UInt64;
  updatesRolledBack @4 :UInt64;
  worker @5 :WorkerCounters;
  server @6 :ServerCounters;
}

struct ObserverOrders {
  view @0 :View;
  phase @1 :UInt8;  # job_phase
  batchesDone @2 :UInt64;
  checkpoint @3 :UInt64;
  members @4 :List(MemberStatus);
  events @5 :List(Text);
  eventsTotal @6 :UInt64;
}

struct Orders {
  to @0 :Member;
  term @1 :UInt64;
  sequence @2 :UInt64;
  stop @3 :Bool;
  failed @4 :Text;
  union {
    worker @5 :WorkerOrders;
    server @6 :ServerOrders;
    observer @7 :ObserverOrders;
  }
}
