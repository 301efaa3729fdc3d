// What was judged, where and by what: the last section of report.html.

#include <fmt/format.h>

#include "conformance/publish/html_parts.h"
#include "conformance/publish/tables.h"
#include "conformance/report/page_text.h"

namespace assay::conformance {
namespace {

class FactList {
 public:
  void row(const char* name, const std::string& text, bool code = false) {
    if (text.empty()) return;
    const std::string shown = html_text(text);
    made_ += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, code ? "<code>" + shown + "</code>" : shown);
  }
  std::string text() const { return "<dl class=\"facts\">\n" + made_ + "</dl>\n"; }

 private:
  std::string made_;
};

}  // namespace

std::string report_environment(const Collected& all) {
  std::string made = "<section id=\"environment\"><h2>Environment</h2>\n";
  for (const PublishedImplementation& each : all.implementations) {
    FactList list;
    list.row("software", each.software);
    list.row("device", each.device.empty() ? "not recorded" : each.device);
    list.row("architecture", each.architecture);
    list.row("options", each.options, true);
    list.row("axes", each.axes, true);
    list.row("algorithm", each.algorithm);
    list.row(each.built_in ? "program" : "library", each.library, true);
    list.row("SHA-256", each.sha256, true);
    made += "<h3>" + html_name(each.name) + "</h3>\n" + list.text();
  }
  for (const PublishedRun& run : all.runs) {
    FactList list;
    list.row("command", run.arguments, true);
    list.row("date", run.date);
    list.row("exit", run.complete ? run.exit : "incomplete: the run did not end");
    list.row("suite", run.program + (run.commit.empty() ? "" : ", commit " + run.commit));
    list.row("host", run.host + (run.system.empty() ? "" : ", " + run.system) +
                         (run.threads > 0 ? fmt::format(", {} threads", run.threads) : ""));
    if (run.seconds > 0) list.row("time", seconds_text(run.seconds));
    for (const std::string& note : run.notes) list.row("note", note);
    list.row("SHA-256", run.sha256, true);
    made += "<h3>" + html_name(run.file) + "</h3>\n" + list.text();
  }
  if (all.same_files > 0) made += fmt::format("<p>Given again with the same bytes, and counted once: {}.</p>\n", all.same_files);
  if (all.replaced > 0) made += fmt::format("<p>Older verdicts that a newer file replaces: {}.</p>\n", all.replaced);
  return made + "</section>\n";
}

}  // namespace assay::conformance
