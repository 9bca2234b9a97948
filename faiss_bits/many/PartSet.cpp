#include "faiss_bits/many/PartSet.h"

#include <algorithm>
#include <typeinfo>
#include <utility>

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexIVFPQ.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/gpu/GpuCloner.h>
#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/CallStream.h"
#include "faiss_bits/ivf/EmptyIvf.h"
#include "faiss_bits/ivf/ListsBefore.h"
#include "faiss_bits/ivf/OurIvf.h"
#include "faiss_bits/many/PeerAccess.h"

namespace faiss_bits::gpu::detail {

namespace {

GpuIndexBitsFlatConfig flatConfigOf(
        const GpuIndexBitsManyConfig& config,
        int device) {
    GpuIndexBitsFlatConfig flat;
    flat.device = device;
    flat.useFloat16 = config.useFloat16;
    flat.useBFloat16 = config.useBFloat16;
    flat.keepSearchImage = config.keepSearchImage;
    return flat;
}

} // namespace

PartSet::PartSet(
        const DeviceList& list,
        const GpuIndexBitsManyConfig& config,
        const char* kind)
        : config(config),
          devices(list, config, kind),
          copies(std::make_unique<DeviceCopies>(devices, config)),
          times(std::make_unique<GroupTimes>(devices.groups().size())) {}

PartSet::~PartSet() = default;

void PartSet::makeFlat(int dims, faiss::MetricType metric) {
    for (int part = 0; part < devices.size(); ++part) {
        devices.onPart(part, [&] {
            const DevicePlace& place = devices[part];
            auto index = std::make_unique<GpuIndexBitsFlat>(
                    place.resources,
                    dims,
                    metric,
                    flatConfigOf(config, place.device));
            flat.push_back(index.get());
            parts.push_back(std::move(index));
        });
    }
}

void PartSet::take(std::vector<std::unique_ptr<faiss::gpu::GpuIndex>> given) {
    FAISS_THROW_IF_NOT_FMT(
            int(given.size()) == devices.size(),
            "parts has %zu entries, and devices %d",
            given.size(),
            devices.size());
    for (size_t i = 0; i < given.size(); ++i) {
        FAISS_THROW_IF_NOT_FMT(given[i], "parts[%zu] is a null pointer", i);
        FAISS_THROW_IF_NOT_FMT(
                given[i]->d == given[0]->d &&
                        given[i]->metric_type == given[0]->metric_type,
                "parts[%zu] has d = %d and metric = %d, parts[0] %d and %d",
                i,
                int(given[i]->d),
                int(given[i]->metric_type),
                int(given[0]->d),
                int(given[0]->metric_type));
        FAISS_THROW_IF_NOT_FMT(
                given[i]->getDevice() == devices[int(i)].device,
                "parts[%zu] is on device %d, and devices[%zu] is %d",
                i,
                given[i]->getDevice(),
                i,
                devices[int(i)].device);
        FAISS_THROW_IF_NOT_FMT(
                given[i]->is_trained == given[0]->is_trained,
                "parts[%zu] is%s trained, and parts[0] is%s",
                i,
                given[i]->is_trained ? "" : " not",
                given[0]->is_trained ? "" : " not");
    }
    parts = std::move(given);
}

void PartSet::requireOurs(const char* what) const {
    for (size_t i = 0; i < parts.size() && !isFlat(); ++i) {
        FAISS_THROW_IF_NOT_FMT(
                isOurIvf(*parts[i]),
                "%s: parts[%zu] is a %s, which is no index of ours and could "
                "not take vectors back",
                what,
                i,
                faiss::demangle_cpp_symbol(typeid(*parts[i]).name()).c_str());
    }
}

namespace {

/// FAISS's index on the CPU of a class of ours.
template <class Ours>
struct CpuOf;
template <>
struct CpuOf<GpuIndexBitsIVFFlat> {
    using Type = faiss::IndexIVFFlat;
};
template <>
struct CpuOf<GpuIndexBitsIVFPQ> {
    using Type = faiss::IndexIVFPQ;
};
template <>
struct CpuOf<GpuIndexBitsIVFScalarQuantizer> {
    using Type = faiss::IndexIVFScalarQuantizer;
};

/// Makes lists of ours those of what index_gpu_to_cpu has made of an index like
/// them.
void copyFrom(faiss::gpu::GpuIndex& index, const faiss::Index& cpu) {
    asOurIvf(index, [&]<class Ours>(Ours& ours) {
        ours.copyFrom(&dynamic_cast<const typename CpuOf<Ours>::Type&>(cpu));
    });
}

} // namespace

void PartSet::train(idx_t n, const float* x) {
    devices.onPart(0, [&] { parts[0]->train(n, x); });
    std::unique_ptr<faiss::Index> trained;
    devices.onPart(0, [&] {
        trained.reset(faiss::gpu::index_gpu_to_cpu(parts[0].get()));
    });
    try {
        devices.onEach([&](int part) {
            if (part > 0) {
                copyFrom(*parts[part], *trained);
            }
        });
    } catch (...) {
        devices.waitForAll();
        faiss::IndexFlat none(int(trained->d), trained->metric_type);
        const auto untrained = emptyIvfLike(
                dynamic_cast<const faiss::IndexIVF&>(*trained), &none);
        untrained->is_trained = false;
        // FAISS's copy has all of the quantizer but how it is trained.
        if (auto* product = dynamic_cast<faiss::IndexIVFPQ*>(untrained.get())) {
            product->pq.cp =
                    dynamic_cast<const GpuIndexBitsIVFPQ&>(*parts[0]).pq.cp;
        }
        for (int part = 0; part < devices.size(); ++part) {
            try {
                devices.onPart(
                        part, [&] { copyFrom(*parts[part], *untrained); });
            } catch (const std::exception&) {
                // That of the copy says more: the device has failed.
            }
        }
        throw;
    }
}

void PartSet::addOrTakeBack(const std::function<void(int part)>& f) {
    std::vector<idx_t> before;
    std::vector<ListsBefore> lists;
    for (const auto& part : parts) {
        before.push_back(part->ntotal);
        if (!isFlat()) {
            lists.emplace_back(*part);
        }
    }
    try {
        devices.onEach(f);
    } catch (...) {
        devices.waitForAll();
        for (int part = 0; part < devices.size(); ++part) {
            try {
                devices.onPart(part, [&] {
                    if (isFlat()) {
                        flat[part]->truncate(before[part]);
                    } else {
                        const cudaStream_t stream =
                                devices.context(part).stream;
                        lists[part].restore(stream);
                        waitFor(stream);
                    }
                });
            } catch (const std::exception&) {
                // That of the addition says more: the device has failed.
            }
        }
        throw;
    }
}

bool PartSet::areCanonical() const {
    for (int part = 0; part < devices.size(); ++part) {
        if (isFlat() ? flat[part]->search_mode != SearchMode::Certified
                     : !isOurIvf(*parts[part])) {
            return false;
        }
    }
    return true;
}

bool PartSet::canWriteHome(int part, std::initializer_list<const void*> arrays)
        const {
    return copies->isDirect(devices.groupOf(part), 0) &&
            isOurIvf(*parts[part]) &&
            std::all_of(arrays.begin(), arrays.end(), [](const void* array) {
                return !array || canUse(array);
            });
}

void PartSet::searchAfar(int part, const std::function<void()>& f) const {
    const DevicePlace& place = devices[part];
    const CallStream call(
            place.resources,
            place.device,
            devices.context(part).stream,
            true /* arraysAreOnDevice */);
    f();
}

void PartSet::addTo(
        int part,
        idx_t n,
        const float* x,
        const idx_t* ids,
        bool onHost) {
    const GpuContext context = devices.context(part);
    const GpuContext home = devices.context(0);
    faiss::gpu::GpuIndex& index = *parts[part];
    if (onHost || context.device == home.device) {
        index.add_with_ids(n, x, ids);
    } else {
        if (isFlat()) {
            flat[part]->reserve(index.ntotal + n);
        }
        copies->addSome(
                devices.groupOf(part),
                context,
                home,
                x,
                n,
                int(index.d),
                [&](idx_t first, idx_t rows, const float* copy) {
                    index.add_with_ids(rows, copy, ids ? ids + first : nullptr);
                });
    }
    if (!onHost) { // x is the caller's again
        waitFor(context.stream);
        waitFor(context.memoryStream); // FAISS's own additions
    }
}

} // namespace faiss_bits::gpu::detail
