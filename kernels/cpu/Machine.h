#pragma once

namespace faiss_bits::cpu {

/// Constants of the cost model for one thread; section 2.6 of the paper. They
/// come from the file that the environment's FAISS_BITS_CPU_MACHINE names, or
/// are measured (about 50 ms) and written there if it does not exist yet: once
/// for a machine. Without that variable they are measured once in a process,
/// and a search that takes less is planned with typical ones, if nothing was
/// measured before it. A file that is not right is an Error of the search; one
/// that cannot be written is a warning on stderr, once a process.
struct Machine {
    double operationsPerSecond = 0; ///< tau_f: multiply-adds count two
    double secondsPerValue = 0;     ///< tau_b: a value streamed from memory
    double secondsPerAccess = 0; ///< tau_l: a random access beyond cacheBytes
    double cacheBytes = 0;       ///< L2 of a core
    double sharedBytes = 0;      ///< last level
    int lanes = 1;               ///< floats in the vectors of tau_f
};

/// Those of this machine; measures them if that has not been done.
const Machine& thisMachine();
/// Has this process measured them yet?
bool isMachineMeasured();

} // namespace faiss_bits::cpu
