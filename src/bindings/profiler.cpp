// Profiling from Python: a session as an object with events, averages, tables, traces and the
// timeline page.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/errors.h"
#include "bindings/module.h"
#include "profile/chrome_trace.h"
#include "profile/profile.h"
#include "profile/table.h"
#include "profile/timeline.h"
#include "runtime/parallel.h"

namespace nb = nanobind;

namespace prong::python {

namespace {

constexpr double kUs = 1e-3;  // nanoseconds to microseconds

// (name, category, tid, start_us, end_us, task, detail, is_clipped) of every span, by start time.
nb::list spans_of(const profile::Session& session) {
  nb::list all;
  for (const profile::Event& e : session.events) {
    if (e.kind != profile::Event::Kind::kSpan) continue;
    all.append(nb::make_tuple(
        e.name, profile::category_name(e.category), e.tid, static_cast<double>(e.start_ns) * kUs,
        static_cast<double>(e.end_ns) * kUs, e.task, e.detail ? e.detail : "", e.is_clipped));
  }
  return all;
}

nb::list averages_of(const profile::Session& session, bool by_detail) {
  nb::list all;
  for (const profile::Average& a : profile::key_averages(session, by_detail)) {
    nb::dict d;
    d["key"] = a.key;
    d["detail"] = a.detail;
    d["category"] = profile::category_name(a.category);
    d["count"] = a.count;
    d["cpu_time_total"] = static_cast<double>(a.total_ns) * kUs;
    d["self_cpu_time_total"] = static_cast<double>(a.self_ns) * kUs;
    all.append(d);
  }
  return all;
}

std::string table_of(const profile::Session& session, const std::string& sort_by, int row_limit,
                     int name_width, bool by_detail) {
  return profile::table(profile::key_averages(session, by_detail), sort_by, row_limit, name_width);
}

profile::Session stop_session() {
  profile::Session session = profile::stop();
  session.num_threads = num_threads();
  return session;
}

// record_function's with block: a span on this thread.
class Span {
 public:
  explicit Span(const std::string& name) : name_(profile::intern(name)) {}
  void begin() { span_.begin(name_, profile::Category::kUser); }
  void end() { span_.end(); }

 private:
  const char* name_;
  profile::OpenSpan span_;
};

}  // namespace

void bind_profiler(nb::module_& m) {
  nb::class_<profile::Session>(m, "ProfileSession")
      .def("spans", &spans_of)
      .def("averages", &averages_of)
      .def("table", &table_of)
      .def("write_chrome_trace",
           [](const profile::Session& s, const std::string& path) {
             profile::write_chrome_trace(s, path);
           })
      .def("write_timeline",
           [](const profile::Session& s, const std::string& title, const std::string& path) {
             profile::write_timeline(s, title, path);
           })
      .def_prop_ro("duration_us", [](const profile::Session& s) {
        return static_cast<double>(s.duration_ns) * kUs;
      });
  nb::class_<Span>(m, "ProfileSpan")
      .def(nb::init<const std::string&>())
      .def("begin", &Span::begin)
      .def("end", &Span::end);
  m.def("_profile_start", &profile::start);
  m.def("_profile_stop", &stop_session);
  m.def("_profile_is_on", &profile::is_on);
}

}  // namespace prong::python
