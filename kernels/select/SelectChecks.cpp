#include "kernels/select/SelectChecks.h"

#include <algorithm>
#include <limits>

#include "kernels/common/Error.h"

namespace faiss_bits {

namespace {

/// What every device gives a block without being asked.
constexpr size_t kLeastSharedBytes = 48 * 1024;

bool canLoadVectors(const SelectProblem& p, idx_t rowStride) {
    const auto aligned = [](const void* pointer) {
        return reinterpret_cast<uintptr_t>(pointer) % 16 == 0;
    };
    return aligned(p.keys) && aligned(p.colBias) &&
            (p.rows == 1 || rowStride * sizeOf(p.keyType) % 16 == 0);
}

} // namespace

void checkSelectShape(const SelectProblem& p) {
    BITS_THROW_IF_NOT_FMT(p.k >= 1, "k = %d is below 1", p.k);
    BITS_THROW_IF_NOT_FMT(
            p.rows >= 0, "rows = %lld is negative", (long long)p.rows);
    BITS_THROW_IF_NOT_FMT(
            p.cols >= 0 && p.cols <= kMaxSelectCols,
            "cols = %lld is outside 0..%lld",
            (long long)p.cols,
            (long long)kMaxSelectCols);
    BITS_THROW_IF_NOT_FMT(
            p.rows <= kMaxSelectRows,
            "rows = %lld is above %lld",
            (long long)p.rows,
            (long long)kMaxSelectRows);
    BITS_THROW_IF_NOT_FMT(
            p.rowStride == 0 || p.rowStride >= p.cols,
            "rowStride = %lld is below cols = %lld",
            (long long)p.rowStride,
            (long long)p.cols);
    BITS_THROW_IF_NOT_FMT(
            p.idStride == 0 || p.idStride >= p.cols,
            "idStride = %lld is below cols = %lld",
            (long long)p.idStride,
            (long long)p.cols);
    BITS_THROW_IF_NOT_FMT(
            p.keyType == DataType::Float32 || p.keyType == DataType::Float16 ||
                    p.keyType == DataType::BFloat16,
            "keyType = %d is none of Float32, Float16 and BFloat16",
            int(p.keyType));
    BITS_THROW_IF_NOT_FMT(
            p.idType == IdType::Int32 || p.idType == IdType::Int64,
            "idType = %d is neither Int32 nor Int64",
            int(p.idType));
    BITS_THROW_IF_NOT_FMT(
            p.device.multiprocessors >= 1,
            "device.multiprocessors = %d is below 1",
            p.device.multiprocessors);
    BITS_THROW_IF_NOT_FMT(
            p.device.blockSharedBytes >= kLeastSharedBytes &&
                    p.device.sharedBytes >= p.device.blockSharedBytes,
            "device.blockSharedBytes = %zu is outside %zu..%zu",
            p.device.blockSharedBytes,
            kLeastSharedBytes,
            p.device.sharedBytes);
}

void checkSelectPointers(const SelectProblem& p) {
    BITS_THROW_IF_NOT_FMT(p.keys || p.cols == 0, "keys = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outKeys, "outKeys = nullptr");
    BITS_THROW_IF_NOT_FMT(p.outIds, "outIds = nullptr");
    BITS_THROW_IF_NOT_FMT(
            p.outStride == 0 || p.outStride >= p.k,
            "outStride = %lld is below k = %d",
            (long long)p.outStride,
            p.k);
    BITS_THROW_IF_NOT_FMT(
            p.ids || !p.idsGiven, "ids = nullptr, and idsGiven is set");
    BITS_THROW_IF_NOT_FMT(
            p.colBias || !p.colBiasGiven,
            "colBias = nullptr, and colBiasGiven is set");
    BITS_THROW_IF_NOT_FMT(
            p.rowBias || !p.rowBiasGiven,
            "rowBias = nullptr, and rowBiasGiven is set");
    BITS_THROW_IF_NOT_FMT(
            p.colBias || !p.rowBias,
            "colBias = nullptr, rowBias = %p: it needs a colBias",
            (const void*)p.rowBias);
    BITS_THROW_IF_NOT_FMT(
            p.ids || !p.sharedIds, "ids = nullptr, and sharedIds is set");
    BITS_THROW_IF_NOT_FMT(
            !p.colBias || (p.keyType == DataType::Float32 && !p.largest),
            "colBias needs Float32 keys and largest = false");
    BITS_THROW_IF_NOT_FMT(
            !p.negated || (p.colBias && !p.clampAtZero),
            "negated needs colBias and clampAtZero = false");
    const idx_t lastId = p.idOffset + std::max<idx_t>(p.cols, 1) - 1;
    BITS_THROW_IF_NOT_FMT(
            p.ids || p.idType == IdType::Int64 ||
                    (p.idOffset >= INT32_MIN && lastId <= INT32_MAX),
            "idOffset = %lld makes ids that Int32 cannot hold",
            (long long)p.idOffset);
}

std::string noRefusal(const SelectProblem&) {
    return "";
}

SurvivorOutput outputOf(const SelectProblem& p) {
    SurvivorOutput output;
    output.k = p.k;
    output.keyType = p.keyType;
    output.largest = p.largest || p.negated;
    output.sorted = p.sorted;
    output.dropNan = p.dropNan;
    output.ids = p.ids;
    output.idStride = p.idStride ? p.idStride : p.rowStride;
    output.sharedIds = p.sharedIds;
    output.idOffset = p.idOffset;
    output.idType = p.idType;
    output.outKeys = p.outKeys;
    output.outIds = p.outIds;
    output.outStride = p.outStride;
    output.device = p.device;
    return output;
}

SelectParams makeSelectParams(const SelectProblem& p) {
    SelectParams params;
    static_cast<ResultParams&>(params) = makeResultParams(outputOf(p), p.cols);
    params.keys = p.keys;
    params.rowStride = p.rowStride ? p.rowStride : p.cols;
    params.cols = uint32_t(p.cols);
    params.signMask = p.negated ? 0 : params.outSignMask;
    params.vectorLoads = canLoadVectors(p, params.rowStride);
    params.colBias = p.colBias;
    params.rowBias = p.rowBias;
    params.floor = p.clampAtZero ? 0 : -std::numeric_limits<float>::infinity();
    return params;
}

} // namespace faiss_bits
