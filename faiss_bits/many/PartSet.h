#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include <faiss/gpu/GpuIndex.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/flat/GpuIndexBitsFlat.h"
#include "faiss_bits/many/DeviceCopies.h"
#include "faiss_bits/many/GroupSpeeds.h"
#include "faiss_bits/many/ManyDevices.h"

/// The inside of GpuIndexBitsMany. Not part of the API.
namespace faiss_bits::gpu::detail {

/// Parts and the devices where they are. None yet.
struct PartSet {
    /// kind  what a part is called in errors
    PartSet(const DeviceList& list,
            const GpuIndexBitsManyConfig& config,
            const char* kind);
    virtual ~PartSet();

    bool isFlat() const {
        return !flat.empty();
    }

    /// Makes one empty flat index for each entry of the list.
    void makeFlat(int dims, faiss::MetricType metric);

    /// Takes indexes on these devices, or throws FaissException.
    void take(std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> given);

    /// Throws FaissException that names `what` if a part is neither flat nor
    /// inverted lists of ours: FAISS's own could not take an addition back.
    void requireOurs(const char* what) const;

    /// Trains inverted lists of ours that are not, with vectors x [n, d] on the
    /// host or on the first device: the first part, and the others become
    /// copies. Where a copy fails none is trained; where the training does, the
    /// first part is as FAISS leaves one index.
    void train(idx_t n, const float* x);

    /// Calls f(part), which adds vectors, for every part by the thread of its
    /// group. Where one throws all have those again that they had before.
    void addOrTakeBack(const std::function<void(int part)>& f);

    /// Adds vectors x [n, d], on the host or on the first device, to a part, in
    /// the thread of its group. ids [n] on the host, or nullptr: the part's own
    /// numbers.
    void addTo(
            int part,
            idx_t n,
            const float* x,
            const idx_t* ids,
            bool onHost);

    /// Whether a query has the same results in every batch: inverted lists of
    /// ours, and flat indexes that certify.
    bool areCanonical() const;

    /// Whether a search of this part may write its results to these arrays of
    /// the first device itself, so that nobody has to copy them there: inverted
    /// lists of ours, where peers are used. The part's device is the current
    /// one. A null pointer is no obstacle.
    bool canWriteHome(int part, std::initializer_list<const void*> arrays)
            const;

    /// Calls f(), which searches the part with such arrays, in the order of its
    /// context's stream.
    void searchAfar(int part, const std::function<void()>& f) const;

    GpuIndexBitsManyConfig config;
    ManyDevices devices;
    std::unique_ptr<DeviceCopies> copies;
    std::unique_ptr<GroupTimes> times; ///< of searches of replicas
    std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> parts;
    std::vector<GpuIndexBitsFlat*> flat; ///< the same, or none
};

/// The set of a constructor: checks its arguments.
template <class Set>
std::unique_ptr<Set> makePartSet(
        const DeviceList& devices,
        const GpuIndexBitsManyConfig& config) {
    requirePositive(config.leastPiece, "config.leastPiece");
    return withFaissErrors(
            [&] { return std::make_unique<Set>(devices, config); });
}

} // namespace faiss_bits::gpu::detail
