// The frame of report.html: style, script, and the policy that keeps the page from loading
// anything.
#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "experiments/report/report_pages.h"

namespace pipelab {
namespace {

constexpr char kStyle[] = R"css(
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#595959;--page:#fff;--line:#d5d5d5;
  --stripe:#f6f6f6;--accent:#005a8c}
@media (prefers-color-scheme:dark){:root{--ink:#ececec;--soft:#b0b0b0;--page:#16181c;
  --line:#3a3d44;--stripe:#1e2126;--accent:#7cc4ec}}
body{margin:0 auto;max-width:76rem;padding:1.5rem;
  font:16px/1.5 system-ui,"DejaVu Sans",Helvetica,Arial,sans-serif;color:var(--ink);
  background:var(--page)}
h1{font-size:1.7rem;line-height:1.2;margin:.2rem 0 1rem}
h2{font-size:1.25rem;margin:2.2rem 0 .8rem;border-bottom:1px solid var(--line);
  padding-bottom:.2rem}
h3{font-size:1rem;margin:1.6rem 0 .4rem}
p,li{max-width:48rem}
pre{background:var(--stripe);border:1px solid var(--line);padding:.6rem .8rem;overflow-x:auto}
.scroll{overflow-x:auto;margin:.6rem 0}
.scroll:focus-visible,button:focus-visible,summary:focus-visible,
a:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{padding:.35rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
thead th{vertical-align:bottom;border-bottom:2px solid var(--soft);font-weight:600;max-width:9rem}
tbody th{font-weight:600;white-space:nowrap}
tbody tr:nth-child(even){background:var(--stripe)}
.num{text-align:right}
thead span{display:block}
.unit,.origin{font-weight:400;color:var(--soft);font-size:.8rem}
.origin{font-style:italic}
thead button{all:unset;cursor:pointer;display:block;width:100%}
thead button span:first-child::after{content:"\a0\2195";font-weight:400;color:var(--soft);
  font-size:.75rem}
th[aria-sort=ascending] button span:first-child::after{content:"\a0\2191";color:var(--accent)}
th[aria-sort=descending] button span:first-child::after{content:"\a0\2193";color:var(--accent)}
.scroll tbody td{white-space:nowrap}
.facts{margin:1rem 0}
.facts tbody th{font-weight:400;color:var(--soft);white-space:normal;min-width:9rem}
.facts td{overflow-wrap:anywhere}
.notes,.note{font-size:.875rem;color:var(--soft)}
sup{line-height:0}
sup a{color:var(--accent);text-decoration:none;padding-left:.15rem}
figure{margin:.4rem 0}
summary{cursor:pointer;color:var(--accent)}
@media print{:root{--ink:#000;--soft:#444;--page:#fff;--line:#bbb;--stripe:#fff;--accent:#000;
  color-scheme:light}
body{max-width:none;padding:0;font-size:10pt}.scroll{overflow:visible}svg{max-width:100%;
  height:auto}
table{font-size:7.5pt}th,td{padding:.15rem .3rem}
  thead button span:first-child::after{content:""!important}
h2,h3,caption{break-after:avoid}tr,figure{break-inside:avoid}}
)css";

// Headers become buttons that sort; rows without a value stay last. Closed details open for
// printing.
constexpr char kScript[] = R"js(
'use strict';
for (const table of document.querySelectorAll('table')) {
  if (!table.tHead) continue;
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((th, column) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...th.childNodes);
    th.append(button);
    button.addEventListener('click', () => {
      const sign = th.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
      headers.forEach((h) => h.removeAttribute('aria-sort'));
      th.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
      const rows = [...table.tBodies[0].rows].map((row) => {
        const cell = row.cells[column];
        const number = Number(cell.dataset.v);
        const missing = 'missing' in cell.dataset ||
            (cell.dataset.v !== undefined && Number.isNaN(number));
        return {row, missing, key: cell.dataset.v === undefined ? cell.textContent : number};
      });
      rows.sort((a, b) => a.missing !== b.missing ? a.missing - b.missing
          : a.key < b.key ? -sign : a.key > b.key ? sign : 0);
      table.tBodies[0].append(...rows.map((r) => r.row));
    });
  });
}
addEventListener('beforeprint', () => {
  for (const details of document.querySelectorAll('details')) details.open = true;
});
)js";

}  // namespace

std::string HtmlPage(absl::string_view title, absl::string_view body) {
  return absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ",
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      HtmlEscape(title), "</title>\n<style>", kStyle, "</style>\n</head>\n<body>\n", body,
      "<script>", kScript, "</script>\n</body>\n</html>\n");
}

}  // namespace pipelab
