/// From the lists of some rows to their results, one block a row.
///
/// A list may be misleading: too short for k, or longer than its room. What
/// becomes of its row is up to who made the lists, so it is a policy:
///
///     struct RowsAgain {
///         using Params = ...;        // FinishParams or derived from its parts
///         struct SharedStorage {};
///         __device__ static bool isNeeded(const Params&, uint32_t row);
///         __device__ static void run(
///                 SharedStorage&, const Params&, uint32_t row);
///     };
///
/// isNeeded is asked by every thread of the row's block; run is called by all
/// of them, begins and ends with the block in step, and leaves a list that is
/// right in counts, survivors and limits.
#pragma once

#include "kernels/common/DependentLaunch.h"
#include "kernels/common/DynamicShared.h"
#include "kernels/survivors/ListParams.h"
#include "kernels/survivors/RowFinish.cuh"

namespace faiss_bits {

/// Lists are what they are.
struct NoRowsAgain {
    using Params = FinishParams;
    struct SharedStorage {};

    __device__ static bool isNeeded(const Params&, uint32_t) {
        return false;
    }
    __device__ static void run(SharedStorage&, const Params&, uint32_t) {}
};

/// One block a row.
template <class T, class Again, int Threads, int Room>
struct FinishRowsBody {
    using Params = typename Again::Params;
    using Finish = RowFinish<T, Params, Threads, Room>;

    union SharedStorage {
        typename Finish::SharedStorage finish;
        typename Again::SharedStorage again;
    };

    /// Words of dynamic shared memory: the storage, and behind it the room
    /// of the sort and what is staged of the survivors.
    static constexpr size_t kStorageWords = (sizeof(SharedStorage) + 7) / 8;
    static constexpr size_t words(size_t staged) {
        return kStorageWords + Finish::kRoomWords + staged;
    }

    SharedStorage& shared;
    uint64_t* room;
    const Params& params;

    __device__ void run(uint32_t row) {
        if (Again::isNeeded(params, row)) {
            Again::run(shared.again, params, row);
        }
        // What a list had no room for is lost, unless the policy brought it.
        uint32_t count = min(params.counts[row], params.capacity);
        uint64_t limit = params.limits ? params.limits[row] : kNoEntry - 1;
        const uint64_t* survivors =
                params.survivors + size_t(row) * params.capacity;
        uint64_t* staged = room + Finish::kRoomWords;
        if (count <= params.staged) {
            copyEntries<Threads>(survivors, count, staged);
            survivors = staged;
        } else if (
                count > kManySurvivors && params.staged > uint32_t(params.k)) {
            limit = stageBest(shared, params, survivors, count, staged);
            count = shared.finish.kept;
            survivors = staged;
        }
        Finish{shared.finish}.run(
                params, params.firstRow + row, survivors, count, limit, room);
    }

   private:
    /// So many are read several times in global memory in more time than it
    /// takes to find those that shared memory has room for.
    static constexpr uint32_t kManySurvivors = 8 * Threads;

    /// Of a list that is far longer than expected, as that of a second turn may
    /// be: k of the best and some more, shared.finish.kept of them. Returns an
    /// entry that k of them are not above. Begins and ends with the block in
    /// step. Out of line, so that it costs the others no registers.
    __device__ static __noinline__ uint64_t stageBest(
            SharedStorage& shared,
            const Params& params,
            const uint64_t* survivors,
            uint32_t count,
            uint64_t* to) {
        const auto forEach = [&](auto take) {
            forEachEntry<Threads, 8>(survivors, count, take);
        };
        const uint64_t limit =
                typename Finish::Narrow{shared.finish.narrow}.limit(
                        forEach, uint32_t(params.k), params.staged);
        if (threadIdx.x == 0) {
            shared.finish.kept = 0;
        }
        __syncthreads();
        keepEntries<Threads>(survivors, count, limit, to, &shared.finish.kept);
        return limit;
    }
};

template <class T, class Again, int Threads, int Room>
__global__ void __launch_bounds__(Threads, 1024 / Threads)
        finishRowsKernel(const __grid_constant__
                         typename Again::Params params) {
    waitForPrevious();
    using Body = FinishRowsBody<T, Again, Threads, Room>;
    extern __shared__ uint64_t memory[];
    auto& shared = *reinterpret_cast<typename Body::SharedStorage*>(memory);
    Body{shared, memory + Body::kStorageWords, params}.run(blockIdx.x);
}

/// Enqueues finishRowsKernel. Lowers `staged` to what the shared memory has
/// room for.
template <class T, class Again, int Threads, int Room>
void launchFinishKernel(
        const typename Again::Params& params,
        unsigned rows,
        cudaStream_t stream) {
    using Body = FinishRowsBody<T, Again, Threads, Room>;
    const auto kernel = finishRowsKernel<T, Again, Threads, Room>;
    auto p = params;
    const size_t wanted = Body::words(p.staged) * 8;
    const size_t bytes = allowSharedBytes(kernel, wanted);
    p.staged -= uint32_t(std::min<size_t>(p.staged, (wanted - bytes + 7) / 8));
    launchAfterPrevious(kernel, rows, Threads, bytes, stream, p);
}

} // namespace faiss_bits
