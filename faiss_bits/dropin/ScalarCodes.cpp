#include "faiss_bits/dropin/ScalarCodes.h"

namespace faiss_bits::dropin {

namespace {

using faiss::gpu::GpuResources;
using faiss::gpu::GpuScalarQuantizer;
using faiss::gpu::ScalarQuantizerMemory;
using faiss::gpu::ScalarRangesMemory;

enum class Ranges { None, OfComponents, OfAll };

struct ScalarKind {
    int type;
    ListCoding coding;
    size_t bits;
    Ranges ranges;
};

constexpr ScalarKind kKinds[] = {
        {faiss::gpu::SCALAR_8BIT, ListCoding::Scalar8, 8, Ranges::OfComponents},
        {faiss::gpu::SCALAR_4BIT, ListCoding::Scalar4, 4, Ranges::OfComponents},
        {faiss::gpu::SCALAR_8BIT_UNIFORM,
         ListCoding::Scalar8,
         8,
         Ranges::OfAll},
        {faiss::gpu::SCALAR_4BIT_UNIFORM,
         ListCoding::Scalar4,
         4,
         Ranges::OfAll},
        {faiss::gpu::SCALAR_FP16, ListCoding::Float16, 16, Ranges::None},
        {faiss::gpu::SCALAR_8BIT_DIRECT, ListCoding::Scalar8, 8, Ranges::None},
        {faiss::gpu::SCALAR_6BIT,
         ListCoding::Scalar6,
         6,
         Ranges::OfComponents}};

const ScalarKind* kindOf(int type) {
    for (const ScalarKind& kind : kKinds) {
        if (kind.type == type) {
            return &kind;
        }
    }
    return nullptr;
}

/// Whether the ranges on the device are those on the host, by their number and
/// by who made them.
template <class Index>
bool areRanges(
        const ScalarRangesMemory<Index>& ranges,
        size_t count,
        const GpuResources* resources) {
    const auto& memory = ranges.gpuTrainedMemory_;
    const auto& onDevice = ranges.gpuTrained_;
    return onDevice.size_[0] == Index(count) && onDevice.stride_[0] == 1 &&
            onDevice.data_ && memory.data == onDevice.data_ &&
            memory.res == resources && memory.size / sizeof(float) >= count;
}

/// The ranges on the device; nullptr: they are not where we know them.
template <class Index>
const float* rangesOf(
        const ScalarQuantizerMemory& q,
        size_t count,
        const GpuResources* resources) {
    if (!q.trainedBegin_ || q.trainedBegin_ + count != q.trainedEnd_ ||
        q.trainedEnd_ > q.trainedCapacity_) {
        return nullptr;
    }
    // The nearest first: others end there.
    for (size_t at : faiss::gpu::kScalarRangesAt) {
        if (sizeof(Index) == 4 && at != faiss::gpu::kScalarRangesAt[0]) {
            break;
        }
        const auto& ranges =
                *reinterpret_cast<const ScalarRangesMemory<Index>*>(
                        reinterpret_cast<const char*>(&q) + at);
        if (areRanges(ranges, count, resources)) {
            return ranges.gpuTrained_.data_;
        }
    }
    return nullptr;
}

} // namespace

template <class Index>
ScalarReading readScalarQuantizer(
        const GpuScalarQuantizer* quantizer,
        const GpuResources* resources,
        IvfLists& lists) {
    const auto& q = *reinterpret_cast<const ScalarQuantizerMemory*>(quantizer);
    const std::string unknown =
            "a GpuScalarQuantizer is not what it is in FAISS 1.7.3 to 1.15";
    if (q.d_ != size_t(lists.d)) {
        return {unknown, ""};
    }
    const ScalarKind* kind = kindOf(q.type_);
    if (!kind) {
        return {"", "scans of scalar codes of type " + std::to_string(q.type_)};
    }
    if (q.bits_ != kind->bits || q.codeSize_ != (q.d_ * kind->bits + 7) / 8) {
        return {unknown, ""};
    }
    if (kind->coding == ListCoding::Scalar6 &&
        lists.layout == ListLayout::Rows) {
        return {"", "scans of scalar codes of 6 bits, not interleaved"};
    }
    lists.coding = kind->coding;
    if (kind->ranges != Ranges::None) {
        const size_t ranges = kind->ranges == Ranges::OfAll ? 1 : q.d_;
        const float* trained = rangesOf<Index>(q, 2 * ranges, resources);
        if (!trained) {
            return {unknown, ""};
        }
        lists.decoding.ranges = int(ranges);
        lists.decoding.trained = trained;
        // Of all types FAISS divides for this one alone.
        lists.decoding.byInverse = kind->type != faiss::gpu::SCALAR_4BIT;
    }
    return {};
}

template ScalarReading readScalarQuantizer<int>(
        const GpuScalarQuantizer*,
        const GpuResources*,
        IvfLists&);
template ScalarReading readScalarQuantizer<int64_t>(
        const GpuScalarQuantizer*,
        const GpuResources*,
        IvfLists&);

} // namespace faiss_bits::dropin
