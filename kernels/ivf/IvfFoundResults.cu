// Of the candidates of a range search those that are near enough, in the order
// of their columns: a bit for each of the columns says how many come before.

#include <algorithm>

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/device/BlockScan.cuh"
#include "kernels/ivf/IvfFoundParams.h"
#include "kernels/ivf/ListVectors.cuh"

namespace faiss_bits {

namespace {

constexpr int kThreads = 256;

struct LimitsParams {
    float limit;
    uint32_t rows;
    float* nearest;
    int32_t* nearestPlaces;
};

__global__ __launch_bounds__(kThreads) void limitsKernel(
        const __grid_constant__ LimitsParams params) {
    allowNext();
    waitForPrevious();
    const uint32_t row = blockIdx.x * kThreads + threadIdx.x;
    if (row < params.rows) {
        params.nearest[row] = params.limit;
        params.nearestPlaces[row] = 0; // there is one
    }
}

struct PackedParams {
    IvfParams search;
    const uint32_t* firstFound;
    float* rows;
    uint64_t* found;
};

/// Blocks of a row: some have most of what is found.
constexpr unsigned kPackedBlocks = 8;

__global__ __launch_bounds__(kThreads) void packedKernel(
        const __grid_constant__ PackedParams params) {
    allowNext();
    waitForPrevious();
    const IvfParams& search = params.search;
    const uint32_t row = blockIdx.x;
    const uint32_t count = search.numFound[row];
    const uint64_t* from = search.found + int64_t(row) * search.room;
    const uint32_t first = params.firstFound[row];
    for (uint32_t i = blockIdx.y * kThreads + threadIdx.x; i < count;
         i += kPackedBlocks * kThreads) {
        params.found[first + i] = from[i];
        params.rows[first + i] = __uint_as_float(row);
    }
}

/// The first probe of each list of a row, in shared memory.
class ProbeTable {
   public:
    __device__ ProbeTable(uint32_t* memory, uint32_t slots)
            : lists_(memory), probes_(memory + slots), slots_(slots) {}

    /// By all threads of the block; behind its last barrier it is there.
    __device__ void make(const IvfParams& search, uint32_t row) {
        for (uint32_t i = threadIdx.x; i < slots_; i += kThreads) {
            lists_[i] = kNone;
            probes_[i] = kNone;
        }
        __syncthreads();
        for (uint32_t probe = threadIdx.x; probe < search.nprobe;
             probe += kThreads) {
            const uint32_t list = probedList(search, row, probe);
            if (list >= uint32_t(search.lists.numLists)) {
                continue;
            }
            uint32_t slot = slotOf(list);
            for (;;) {
                const uint32_t old = atomicCAS(&lists_[slot], kNone, list);
                if (old == kNone || old == list) {
                    break;
                }
                slot = (slot + 1) & (slots_ - 1);
            }
            atomicMin(&probes_[slot], probe);
        }
        __syncthreads();
    }

    /// Of a list that the row probes.
    __device__ uint32_t probeOf(uint32_t list) const {
        uint32_t slot = slotOf(list);
        while (lists_[slot] != list) {
            slot = (slot + 1) & (slots_ - 1);
        }
        return probes_[slot];
    }

   private:
    static constexpr uint32_t kNone = ~0u;

    __device__ uint32_t slotOf(uint32_t list) const {
        constexpr uint32_t kGolden = 0x9e3779b1u;
        return (list * kGolden >> 16) & (slots_ - 1);
    }

    uint32_t* lists_;
    uint32_t* probes_;
    uint32_t slots_;
};

/// Sets the bit of a vector's column, of the first probe of its list whose bit
/// is not set: a list that is probed twice has every vector twice among the
/// candidates.
__device__ uint32_t takeColumn(
        const IvfParams& search,
        const ProbeTable& table,
        uint32_t row,
        uint64_t place,
        uint32_t* bits) {
    const auto list = uint32_t(place >> 32);
    const uint32_t* columns =
            search.columns + int64_t(row) * (search.nearProbes + 1);
    uint32_t probe = table.probeOf(list);
    for (;;) {
        const uint32_t column = columns[probe] + uint32_t(place);
        const uint32_t bit = 1u << column % 32;
        if (!(atomicOr(&bits[column / 32], bit) & bit)) {
            return column;
        }
        do {
            ++probe;
        } while (probedList(search, row, probe) != list);
    }
}

/// Some of what a row has found, of threads of gridDim.y blocks: few rows may
/// have most of it.
struct PartOfRow {
    uint32_t row = blockIdx.x;
    uint32_t begin = blockIdx.y * kThreads;
    uint32_t step = gridDim.y * kThreads;
};

/// Columns of what is inside, and their bits.
__global__ __launch_bounds__(kThreads) void foundColumnsKernel(
        const __grid_constant__ IvfFoundParams params) {
    extern __shared__ uint32_t ivfProbeTable[];
    allowNext();
    waitForPrevious();
    const IvfRescoreParams& rescored = params.rescored;
    const IvfParams& search = rescored.search;
    const PartOfRow part;
    const uint32_t numFound = search.numFound[part.row];
    if (part.begin >= numFound) {
        return;
    }
    const int64_t first = params.firstOf(part.row);
    uint32_t* bits = params.bits + int64_t(part.row) * params.rowWords;
    ProbeTable table(ivfProbeTable, params.tableSlots);
    table.make(search, part.row);
    for (uint32_t i = part.begin + threadIdx.x; i < numFound; i += part.step) {
        const float distance = rescored.distances[first + i];
        const bool isInside = params.largest ? distance > params.radius
                                             : distance < params.radius;
        params.columns()[first + i] = isInside
                ? takeColumn(
                          search,
                          table,
                          part.row,
                          rescored.places[first + i],
                          bits)
                : kIvfNoColumn;
    }
}

/// A block a row: the bits of the words before each, and of all.
__global__ __launch_bounds__(kThreads) void foundSumsKernel(
        const __grid_constant__ IvfFoundParams params) {
    __shared__ uint32_t sums[kThreads / kWarpSize];
    __shared__ uint32_t counted;
    allowNext();
    waitForPrevious();
    const uint32_t row = blockIdx.x;
    const uint32_t* bits = params.bits + int64_t(row) * params.rowWords;
    uint32_t* before = params.before + int64_t(row) * params.rowWords;
    uint32_t count = 0;
    const bool hasAny = params.rescored.search.numFound[row] > 0;
    for (uint32_t begin = 0; hasAny && begin < params.rowWords;
         begin += kThreads) {
        const uint32_t w = begin + threadIdx.x;
        const uint32_t own = w < params.rowWords ? __popc(bits[w]) : 0;
        const uint32_t until = sumOfThreadsBefore<kThreads>(own, sums);
        if (w < params.rowWords) {
            before[w] = count + until;
        }
        if (threadIdx.x == kThreads - 1) {
            counted = until + own;
        }
        __syncthreads();
        count += counted;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        params.counts[row] = count;
    }
}

/// Results of candidates, kAtOnce of a thread, whose loads wait together.
struct FoundBatch {
    static constexpr int kAtOnce = 4;

    const IvfFoundParams& params;
    const PartOfRow& part;
    const int64_t first;
    const uint32_t numFound;

    __device__ __forceinline__ void write(uint32_t begin, idx_t out) const {
        const IvfRescoreParams& rescored = params.rescored;
        const int64_t words = int64_t(part.row) * params.rowWords;
        uint32_t columns[kAtOnce];
        idx_t to[kAtOnce];
        uint64_t places[kAtOnce];
        float distances[kAtOnce];
        idx_t ids[kAtOnce];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
            const uint32_t i = begin + j * part.step;
            columns[j] =
                    i < numFound ? params.columns()[first + i] : kIvfNoColumn;
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
            if (columns[j] != kIvfNoColumn) {
                const int64_t i = first + begin + j * part.step;
                const int64_t word = words + columns[j] / 32;
                const uint32_t below =
                        params.bits[word] & ((1u << columns[j] % 32) - 1);
                to[j] = out + params.before[word] + __popc(below);
                places[j] = rescored.places[i];
                distances[j] = rescored.distances[i];
            }
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
            if (columns[j] != kIvfNoColumn) {
                ids[j] =
                        listId(rescored.search.lists,
                               uint32_t(places[j] >> 32),
                               uint32_t(places[j]));
            }
        }
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
            if (columns[j] != kIvfNoColumn) {
                params.outDistances[to[j]] = distances[j];
                params.outIds[to[j]] = ids[j];
            }
        }
    }
};

__global__ __launch_bounds__(kThreads) void foundResultsKernel(
        const __grid_constant__ IvfFoundParams params) {
    allowNext();
    waitForPrevious();
    const PartOfRow part;
    const uint32_t numFound = params.rescored.search.numFound[part.row];
    if (part.begin >= numFound) {
        return;
    }
    const FoundBatch batch{params, part, params.firstOf(part.row), numFound};
    const idx_t out = params.firsts[part.row];
    for (uint32_t i = part.begin + threadIdx.x; i < numFound;
         i += FoundBatch::kAtOnce * part.step) {
        batch.write(i, out);
    }
}

/// Blocks of a row: so that one has no more than this of the row that found
/// most, unless there are rows enough to keep the device busy.
constexpr uint32_t kMostOfBlock = 8 * kThreads;
constexpr uint32_t kBusyBlocks = 8192;
constexpr uint32_t kMostParts = 32;

uint32_t partsOfRow(const IvfFoundParams& params) {
    const uint32_t wanted =
            (params.mostFound + kMostOfBlock - 1) / kMostOfBlock;
    const uint32_t most =
            std::min(kBusyBlocks / params.rescored.search.rows, kMostParts);
    return std::max<uint32_t>(std::min(wanted, most), 1);
}

} // namespace

void launchIvfFoundLimits(
        float limit,
        uint32_t rows,
        float* nearest,
        int32_t* nearestPlaces,
        cudaStream_t stream) {
    launchAfterPrevious(
            limitsKernel,
            dim3((rows + kThreads - 1) / kThreads),
            kThreads,
            0,
            stream,
            LimitsParams{limit, rows, nearest, nearestPlaces});
}

void launchIvfFoundPacked(
        const IvfParams& search,
        const uint32_t* firstFound,
        float* rows,
        uint64_t* found,
        cudaStream_t stream) {
    launchAfterPrevious(
            packedKernel,
            dim3(search.rows, kPackedBlocks),
            kThreads,
            0,
            stream,
            PackedParams{search, firstFound, rows, found});
}

void launchIvfFoundCounts(const IvfFoundParams& params, cudaStream_t stream) {
    const uint32_t rows = params.rescored.search.rows;
    launchAfterPrevious(
            foundColumnsKernel,
            dim3(rows, partsOfRow(params)),
            kThreads,
            allowSharedBytes(
                    foundColumnsKernel,
                    2 * sizeof(uint32_t) * params.tableSlots),
            stream,
            params);
    launchAfterPrevious(
            foundSumsKernel, dim3(rows), kThreads, 0, stream, params);
}

void launchIvfFoundResults(const IvfFoundParams& params, cudaStream_t stream) {
    launchAfterPrevious(
            foundResultsKernel,
            dim3(params.rescored.search.rows, partsOfRow(params)),
            kThreads,
            0,
            stream,
            params);
}

} // namespace faiss_bits
