// The host's look: its colours, sizes and fonts as CSS variables, with ours behind them (kit.css).

import type { McpUiHostContext } from "./bridge";

let fonts: CSSStyleSheet | undefined;

export function dress(context: McpUiHostContext): void {
  const root = document.documentElement;
  if (context.theme) {
    root.dataset["theme"] = context.theme;
    root.style.colorScheme = context.theme;
  }
  if (context.locale) root.lang = context.locale;
  for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
    if (name.startsWith("--") && value !== undefined) root.style.setProperty(name, value);
  }
  const css = context.styles?.css?.fonts;
  if (css) {
    // A sheet made by script: the policy allows no other <style> than the page's own, and no font from the network.
    fonts ??= new CSSStyleSheet();
    fonts.replaceSync(css);
    document.adoptedStyleSheets = [fonts];
  }
  const insets = context.safeAreaInsets;
  if (insets) root.style.padding = `${insets.top}px ${insets.right}px ${insets.bottom}px ${insets.left}px`;
}
