// To the clipboard, as hosts allow it: the modern way where the frame has the permission, the old one elsewhere.

/** Whether `text` is on the clipboard now. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    // The area changes line ends; what is copied must not.
    const exact = (event: ClipboardEvent) => {
      event.clipboardData?.setData("text/plain", text);
      event.preventDefault();
    };
    document.addEventListener("copy", exact, { once: true });
    const done = document.execCommand("copy");
    document.removeEventListener("copy", exact);
    area.remove();
    return done;
  }
}
