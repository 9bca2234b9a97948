#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchs/common/Options.h"
#include "kernels/common/Types.h"
#include "kernels/select/SelectAlgorithm.h"

namespace faiss_bits::bench {

/// What a k-selection has to do: the k smallest keys of every row of keys
/// [rows, cols], best first, with ids.
struct SelectShape {
    int64_t rows = 0;
    int64_t cols = 0;
    int k = 0;
    DataType type = DataType::Float32;

    // For ours alone: rivals get rows without gaps, and the smallest keys of
    // negated ones.
    int64_t stride = 0; ///< elements from row to row; 0: cols
    bool largest = false;
};

/// One method that bench_select times. All work goes to the default stream.
class SelectMethod {
   public:
    virtual ~SelectMethod() = default;

    virtual std::string name() const = 0;

    /// Of the last prepare(); empty where a method is one algorithm.
    virtual std::string algorithm() const {
        return "";
    }

    /// True if the user named the algorithm: a row beside the race.
    virtual bool isForced() const {
        return false;
    }

    /// Library and release, for meta: {"raft", "26.10.0"}.
    virtual std::pair<std::string, std::string> version() const = 0;

    /// Why the method cannot take the shape, or an empty string.
    virtual std::string refusal(const SelectShape& shape) const = 0;

    /// Takes what scratch the shape needs, before any run of it. Not timed.
    virtual void prepare(const SelectShape& shape) = 0;

    /// Enqueues one selection; what is timed. Keys [rows, cols] are as they
    /// were afterwards. outKeys has room for rows * k keys, outIds for
    /// rows * k ids of 64 bits; narrower ids are written from its start.
    virtual void run(const void* keys, void* outKeys, void* outIds) = 0;

    /// Brings the results of the last run to outKeys and outIds [rows, k],
    /// where run() left them elsewhere. Not timed.
    virtual void collect(void* /*outKeys*/, void* /*outIds*/) {}

    /// Of the ids that run() and collect() leave.
    virtual IdType idType() const {
        return IdType::Int64;
    }

    /// True if the time does not depend on k: one k is measured for all.
    virtual bool ignoresK() const {
        return false;
    }

    /// Gives the scratch back.
    virtual void release() {}
};

using SelectMethods = std::vector<std::unique_ptr<SelectMethod>>;

/// The rivals of this build that the options ask for.
SelectMethods makeRivals(const Options& options);

/// faiss_bits: our runSelect with `algorithm`.
std::unique_ptr<SelectMethod> makeOurSelect(SelectAlgorithm algorithm);
/// faiss_block and faiss_warp.
void addFaissRivals(SelectMethods& rivals);
/// cub_sort.
void addCubSort(SelectMethods& rivals);
/// raft_auto, raft_radix and raft_warpsort. In a build with RAFT's headers.
void addRaftRivals(SelectMethods& rivals);
/// cub_topk. In a build with a CCCL that has cub::DeviceTopK.
void addCubTopK(SelectMethods& rivals);

} // namespace faiss_bits::bench
