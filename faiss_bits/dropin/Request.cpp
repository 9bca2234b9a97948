#include "faiss_bits/dropin/Request.h"

#include <cuda_runtime.h>

#include "faiss_bits/dropin/Device.h"
#include "faiss_bits/dropin/Finish.h"
#include "kernels/select/Select.h"

namespace faiss_bits::dropin {

namespace {

/// FAISS's own limit; above it, it says so itself.
constexpr int kFaissMaxK = 2048;

struct Bytes {
    uintptr_t begin;
    uintptr_t end;

    Bytes(const void* data, idx_t rows, idx_t cols, idx_t stride, size_t size)
            : begin(reinterpret_cast<uintptr_t>(data)), end(begin) {
        if (data && rows > 0 && cols > 0) {
            end += size_t((rows - 1) * stride + cols) * size;
        }
    }

    bool overlaps(const Bytes& other) const {
        return begin < other.end && other.begin < end;
    }
};

bool outputsLieInInputs(const Request& r) {
    const size_t keySize = sizeof(float);
    const size_t idSize = sizeOf(r.idType);
    const Bytes inputs[] = {
            {r.keys, r.rows, r.cols, r.keyStride, keySize},
            {r.ids, r.rows, r.cols, r.idStride, idSize},
            {r.colBias, 1, r.cols, 0, sizeof(float)}};
    const Bytes outputs[] = {
            {r.outKeys, r.rows, r.k, r.outKeyStride, keySize},
            {r.outIds, r.rows, r.k, r.outIdStride, idSize}};
    for (const Bytes& input : inputs) {
        for (const Bytes& output : outputs) {
            if (input.overlaps(output)) {
                return true;
            }
        }
    }
    return false;
}

SelectProblem makeProblem(const Request& r, const Device& device) {
    SelectProblem p;
    p.rows = r.rows;
    p.cols = r.cols;
    p.k = r.k;
    p.largest = r.largest;
    p.dropNan = true; // FAISS never returns NaN
    p.keys = r.keys;
    p.rowStride = r.rows > 1 && r.cols > 0 ? r.keyStride : 0;
    p.ids = r.ids;
    p.idStride = r.ids && r.rows > 1 ? r.idStride : 0;
    p.idType = r.idType;
    p.colBias = r.colBias;
    // FAISS adds the queries' norms, and clamps, after the selection.
    p.clampAtZero = false;
    p.outKeys = r.outKeys;
    p.outIds = r.outIds;
    p.outStride = r.rows > 1 ? r.outKeyStride : 0;
    p.device = device.traits;
    // One kernel that only reads. FAISS computes the next tile's distances on
    // another stream meanwhile, and is done sooner (inner product, d = 128,
    // 10240 queries, 2^20 vectors, H200: 90.4 ms, SampleThreshold 98.7).
    if (r.k == 1) {
        p.algorithm = SelectAlgorithm::Bits;
    }
    return p;
}

} // namespace

std::string refusalOf(const Request& r) {
    if (!r.mismatch.empty()) {
        return r.mismatch;
    }
    if (r.k < 1 || r.k > kFaissMaxK) {
        return "k = " + std::to_string(r.k) + " is outside 1.." +
                std::to_string(kFaissMaxK);
    }
    if (r.rows > 1 &&
        (r.keyStride < r.cols || (r.ids && r.idStride < r.cols) ||
         r.outKeyStride < r.k || r.outIdStride < r.k)) {
        return "the rows of a tensor overlap";
    }
    return "";
}

void select(const Request& r, cudaStream_t stream) {
    if (r.rows == 0) {
        return;
    }
    const Device& device = currentDevice();
    SelectProblem problem = makeProblem(r, device);
    FinishProblem finish(r);

    // runSelect has one stride for both outputs, and reads keys and ids of the
    // winners again when it writes them: outputs that lie in the inputs are
    // written by a later kernel, when every one of them was read.
    const bool staged = outputsLieInInputs(r) ||
            (r.rows > 1 && r.outKeyStride != r.outIdStride);
    const size_t places = staged ? size_t(r.rows) * r.k : 0;
    const auto layOut = [&](WorkspaceSlices& slices) {
        void* keys = slices.take<uint8_t>(places * sizeof(float));
        void* ids = slices.take<uint8_t>(places * sizeOf(r.idType));
        if (staged) {
            finish.keys = problem.outKeys = keys;
            finish.ids = problem.outIds = ids;
            problem.outStride = finish.keyStride = finish.idStride = r.k;
        }
    };
    WorkspaceSlices measured;
    layOut(measured);
    const size_t stagedBytes = measured.used();
    const SelectPlan plan = planSelection(problem);
    const size_t selectBytes = plan.workspaceBytes();

    const Scratch scratch(device.pool, stagedBytes + selectBytes, stream);
    WorkspaceSlices slices({scratch.data(), stagedBytes});
    layOut(slices);
    runSelect(
            plan,
            problem,
            {static_cast<uint8_t*>(scratch.data()) + stagedBytes, selectBytes},
            stream);
    runFinish(finish, stream);
}

} // namespace faiss_bits::dropin
